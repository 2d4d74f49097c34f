//! While one caller's change is under way, another's is answered Busy, whoever only looks is answered at once, and the
//! service does not end.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Result, ensure};
use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{CONTAINER, Scenario};
use crate::harness::call::{Caller, Order, refused};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::service::{UNIT, property};
use crate::harness::tree;
use crate::harness::user::{self, UID};
use crate::harness::wait::{self, PATIENCE};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-bus-one-change-at-a-time",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    boots: &[run],
};

/// A file that Apply reads before it changes anything.
const HOLD: &str = "proc/meminfo";
const BUSY: &str = "org.workloadguard.Error.Busy";

fn run() -> Verdict {
    tree::install()?;
    // Who reads it waits until somebody writes.
    mkfifo(&tree::path(HOLD), Mode::from_bits_truncate(0o644))?;
    let mut first = Caller::new(0, &Order::apply("multi-core"))?;
    first.go()?;
    let mut hold = wait::until("Apply reads", PATIENCE, || {
        let options = OpenOptions::new()
            .write(true)
            .custom_flags(O_NONBLOCK)
            .open(tree::path(HOLD));
        Ok(Some(options?))
    })?;
    for order in [Order::restore(), Order::apply("single-core")] {
        refused(0, &order, BUSY)?;
    }
    step("a second caller's change is answered Busy");

    ensure!(applied()? == "s \"\"", "Applied is {:?}", applied()?);
    let checked = busctl(&["call", "Check", "s", "multi-core"])?;
    ensure!(checked.starts_with("ba(sss) false"), "{checked}");
    step("whoever looks is answered meanwhile");

    command::ok(&["systemctl", "stop", "--no-block", UNIT])?;
    wait::until_true("it is told to end", PATIENCE, || {
        Ok(property(UNIT, "ActiveState")? == "deactivating")
    })?;
    std::fs::remove_file(tree::path(HOLD))?;
    tree::write(HOLD, "MemAvailable: 1048576 kB\n")?;
    hold.write_all(b"MemAvailable: 1048576 kB\n")?;
    drop(hold);
    let answer = first.answer()?;
    ensure!(answer.error.is_none(), "{answer:?}");
    tree::is_prepared()?;
    step("the change was finished before the service ended, and its caller was answered");

    wait::until_true("it has ended", PATIENCE, || {
        Ok(property(UNIT, "ActiveState")? == "inactive")
    })?;
    // Started anew by the bus, for a user, it knows what is applied.
    ensure!(
        applied()? == "s \"multi-core\"",
        "Applied is {:?}",
        applied()?
    );
    step("the next call starts it again, and it knows what is applied");
    Ok(())
}

fn applied() -> Result<String> {
    busctl(&["get-property", "Applied"])
}

/// As the ordinary user: `verb`, then what belongs behind the object and the interface.
fn busctl(words: &[&str]) -> Result<String> {
    let mut argv = vec![
        "busctl",
        "--system",
        words[0],
        "org.workloadguard.BenchPrep1",
        "/org/workloadguard/BenchPrep1",
        "org.workloadguard.BenchPrep1",
    ];
    argv.extend(&words[1..]);
    let ended = user::run(&argv)?;
    ensure!(
        ended.status == 0,
        "busctl of uid {UID} said: {}",
        ended.said()
    );
    Ok(ended.stdout.trim().to_owned())
}
