//! systemd-boot boots the other two profiles as well, one right after the other.

use super::{LOADER, Scenario};
use crate::harness::boots;
use crate::harness::outcome::Verdict;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-boot-single-core-and-unlimited",
    tiers: LOADER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 600,
    boots: &[prepare, single_core, unlimited, boots::is_normal],
};

fn prepare() -> Verdict {
    boots::set_up()?;
    boots::regenerate()?;
    boots::restart_into("single-core")
}

fn single_core() -> Verdict {
    boots::is_in("single-core")?;
    boots::restart_into("unlimited")
}

fn unlimited() -> Verdict {
    boots::is_in("unlimited")?;
    boots::restart()
}
