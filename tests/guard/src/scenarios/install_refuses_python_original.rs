//! Where the Python original is installed, the install refuses and changes nothing.

use std::path::Path;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{HOME, PAYLOAD, Session, payload};
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "install-refuses-python-original",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

const UNIT: &str = "[Unit]
Description=Workload router

[Service]
ExecStart=/usr/bin/python3 %h/.local/lib/linux-workload-guard/workload-router.py

[Install]
WantedBy=default.target
";

fn run(_session: &Session) -> Verdict {
    let unit = Path::new(HOME).join(".config/systemd/user/workload-router.service");
    home::write(&unit, UNIT)?;
    units::systemctl(&["daemon-reload"])?;
    let before = home::listing(Path::new(HOME))?;
    let xtask = payload("xtask");
    let ended = command::run(&[
        xtask.as_os_str(),
        "install".as_ref(),
        "--dist".as_ref(),
        PAYLOAD.as_ref(),
    ])?;
    step(format_args!("status {}: {}", ended.status, ended.said()));
    ensure!(ended.status != 0, "it was installed");
    ensure!(
        ended.stderr.contains("workload-router.service"),
        "the unit in the way is not named: {}",
        ended.said()
    );
    let changed = home::difference(&before, &home::listing(Path::new(HOME))?);
    ensure!(changed.is_empty(), "it refused, but changed {changed:#?}");
    let description = units::property("workload-router.service", "Description")?;
    ensure!(
        description == "Workload router",
        "the original is now {description:?}"
    );
    Ok(())
}
