//! On one CPU, protected work gets at least eight times the share of heavy work.

use std::time::Duration;

use anyhow::{Context, ensure};

use super::{MACHINE, Scenario};
use crate::harness::cgroup::Meter;
use crate::harness::guard::{Guard, HEAVY, PROTECTED, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::units;
use crate::harness::wait::hold;

pub const SCENARIO: Scenario = Scenario {
    name: "weights-8-to-1",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 240,
    run,
};

const WINDOW: Duration = Duration::from_secs(10);
const AT_LEAST: f64 = 8.0;

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    let cpu = (proc::cpus()? - 1).to_string();
    let protected = load(&["spin"]).on_cpus(&cpu).start()?;
    let heavy = load(&["spin"]).slice(HEAVY).on_cpus(&cpu).start()?;
    let mut ratios = Vec::new();
    for run in 1..=3 {
        let meters = [PROTECTED, HEAVY]
            .iter()
            .map(|slice| Meter::start(&units::property(slice, "ControlGroup")?))
            .collect::<anyhow::Result<Vec<_>>>()?;
        hold("both loads live where they are", WINDOW, || {
            ensure!(protected.now_in()? == protected.cgroup, "protected was moved");
            ensure!(heavy.now_in()? == heavy.cgroup, "heavy was moved");
            Ok(())
        })?;
        let (protected, _) = meters[0].read()?;
        let (heavy, _) = meters[1].read()?;
        let ratio = protected.as_secs_f64() / heavy.as_secs_f64();
        step(format_args!(
            "run {run}: protected {:.2} s, heavy {:.2} s of CPU {cpu}: {ratio:.1} to 1",
            protected.as_secs_f64(),
            heavy.as_secs_f64()
        ));
        ratios.push(ratio);
    }
    let middle = median(&ratios).context("no run")?;
    step(format_args!("median {middle:.1} to 1, wanted at least {AT_LEAST} to 1"));
    ensure!(middle >= AT_LEAST, "median {middle:.1} to 1");
    Ok(())
}
