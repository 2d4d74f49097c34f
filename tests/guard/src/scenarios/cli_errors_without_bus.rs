//! Without a user bus every command says what is missing and ends with 69; what needs no bus works.

use std::process::Command;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{HOME, Session};

pub const SCENARIO: Scenario = Scenario {
    name: "cli-errors-without-bus",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["config"],
        &["run", "true"],
        &["protect", "true"],
        &["reload"],
    ] {
        for bus in [None, Some("unix:path=/nonexistent/bus")] {
            let mut command = Command::new("workload-guard");
            command
                .args(words)
                .env("XDG_RUNTIME_DIR", "/nonexistent")
                .env_remove("DBUS_SESSION_BUS_ADDRESS");
            if let Some(bus) = bus {
                command.env("DBUS_SESSION_BUS_ADDRESS", bus);
            }
            let ended = command::finish(&mut command)?;
            step(format_args!("{words:?}, bus {bus:?}: {}", ended.said()));
            ensure!(
                ended.status == 69,
                "{words:?}, bus {bus:?}: status {}: {}",
                ended.status,
                ended.said()
            );
            ensure!(
                ended.stdout.is_empty() && ended.stderr.to_lowercase().contains("bus"),
                "{words:?}, bus {bus:?}: {}",
                ended.said()
            );
        }
    }
    let ended = command::finish(
        Command::new(format!("{HOME}/.local/bin/workload-guard"))
            .arg("version")
            .env_clear(),
    )?;
    ensure!(
        ended.status == 0 && ended.stdout.contains('.'),
        "version: {}: {}",
        ended.status,
        ended.said()
    );
    let ended = command::run(&["workload-guard", "frob"])?;
    ensure!(ended.status == 2, "wrong usage: {}", ended.status);
    Ok(())
}
