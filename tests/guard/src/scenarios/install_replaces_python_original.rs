//! Where the Python original is installed, the install refuses and changes nothing; with consent it stops the original,
//! renames its files and takes over its settings and its history.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::command::{self, Ended};
use crate::harness::guard::{Guard, uninstall_product};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{HOME, PAYLOAD, Session, payload};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "install-replaces-python-original",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

const UNIT: &str = "[Unit]
Description=Workload router

[Service]
ExecStart=/usr/bin/python3 %h/.local/lib/workload-router.py

[Install]
WantedBy=default.target
";
/// It only has to run.
const PROGRAM: &str = "import signal\nsignal.pause()\n";
/// Another budget than ours, in the place that wins over ours.
const SLICE: &str = "[Slice]\nCPUQuota=300%\n";
const ENV: &str = "# mine\nWORKLOAD_GUARD_CPU_THRESHOLD=55\nWORKLOAD_GUARD_SAMPLE_SEC=1\n";
const HISTORY: &str = "{\"schema_version\": 3, \"ts\": 1700000000, \"routed\": 0}\n";

fn run(session: &Session) -> Verdict {
    let home = Path::new(HOME);
    let own = home.join(".config/systemd/user");
    let unit = own.join("workload-router.service");
    let program = home.join(".local/lib/workload-router.py");
    let slice = own.join("heavy-workload.slice");
    let env = home::config_dir().join("workload-guard.env");
    let history = home::kept_state_dir().join("history.jsonl");
    let command = home.join(".local/bin/workload-guard");
    for (path, text) in [
        (&unit, UNIT),
        (&program, PROGRAM),
        (&slice, SLICE),
        (&env, ENV),
        (&history, HISTORY),
        (&command, "#!/usr/bin/python3\n"),
    ] {
        home::write(path, text)?;
    }
    units::systemctl(&["daemon-reload"])?;
    units::systemctl(&["enable", "--now", "workload-router.service"])?;
    let before = home::listing(home)?;

    let ended = install(&[])?;
    step(format_args!("status {}: {}", ended.status, ended.said()));
    ensure!(ended.status == 1, "it was installed");
    for word in ["workload-router.service", "--replace-original"] {
        ensure!(ended.stderr.contains(word), "{word} is not named");
    }
    let changed = home::difference(&before, &home::listing(home)?);
    ensure!(changed.is_empty(), "it refused, but changed {changed:#?}");
    let running = units::property("workload-router.service", "ActiveState")?;
    ensure!(running == "active", "the original is {running}");

    let ended = install(&["--replace-original"])?;
    step(ended.said());
    ensure!(ended.status == 0, "status {}", ended.status);
    let guard = Guard::connect(session)?;
    guard.answers()?;
    for path in [&unit, &program, &slice, &env, &command] {
        let renamed = format!("{}.superseded", path.display());
        ensure!(Path::new(&renamed).exists(), "{renamed} is not there");
    }
    // The alias is ours now.
    let description = units::property("workload-router.service", "Description")?;
    ensure!(
        description == "Linux Workload Guard",
        "workload-router.service is {description:?}"
    );
    let quota = units::property("heavy-workload.slice", "CPUQuotaPerSecUSec")?;
    ensure!(quota == "4s", "the heavy slice has the quota {quota}");
    let settings = command::ok(&[command.as_os_str(), "config".as_ref()])?;
    for (key, value) in [("routing.cpu_threshold", "55"), ("sampling.interval_sec", "1")] {
        let line = settings
            .lines()
            .find(|line| line.contains(key))
            .unwrap_or_default();
        ensure!(
            line.contains(value) && line.contains("40-workload-router.toml"),
            "{key} was not taken over: {line:?}"
        );
    }
    ensure!(
        fs::read_to_string(&history)? == HISTORY,
        "the history was changed"
    );

    step(uninstall_product(&[])?);
    until_true("no unit of that name is left", PATIENCE, || {
        Ok(units::property("workload-router.service", "LoadState")? == "not-found")
    })?;
    ensure!(history.exists(), "the history is gone");
    Ok(())
}

fn install(options: &[&str]) -> anyhow::Result<Ended> {
    let xtask = payload("xtask");
    let mut argv = vec![
        xtask.as_os_str(),
        "install".as_ref(),
        "--dist".as_ref(),
        PAYLOAD.as_ref(),
    ];
    argv.extend(options.iter().map(std::ffi::OsStr::new));
    command::run(&argv)
}
