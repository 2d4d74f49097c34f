//! A service that is killed between two writes leaves a record: the next one puts back every byte.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Result, ensure};
use nix::libc::O_NONBLOCK;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::{MACHINE, Scenario};
use crate::harness::call::{Caller, Order, done};
use crate::harness::kernel;
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{CLI, bench, ended_with};
use crate::harness::service::{self, UNIT, property};
use crate::harness::wait::{self, PATIENCE};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-apply-killed",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 240,
    boots: &[run],
};

/// In the service's own view a setting is this pipe: whoever reads it waits.
const HOLD: &str = "/run/hold";
const HELD: &str = "/proc/sys/vm/stat_interval";
const SMT: &str = "/sys/devices/system/cpu/smt/control";

fn run() -> Verdict {
    service::install()?;
    kernel::plan(CLI)?;
    kernel::swap_on()?;
    let before = kernel::changed()?;

    mkfifo(HOLD, Mode::from_bits_truncate(0o644))?;
    service::set(&format!("BindPaths={HOLD}:{HELD}"))?;
    let mut caller = Caller::new(0, &Order::apply("multi-core"))?;
    caller.go()?;
    // What is there is read before the first write and again after SMT and swap are off.
    let mut first = reader_waits("the first look")?;
    first.write_all(b"1\n")?;
    drop(first);
    wait::until_true("SMT is off", PATIENCE * 2, || {
        Ok(kernel::says(SMT, "off").is_ok())
    })?;
    let held = reader_waits("the second look")?;
    ensure!(kernel::swaps()?.is_empty(), "{:?}", kernel::swaps()?);
    kernel::says(HELD, before[HELD].trim())?;
    kill_it()?;
    drop(held);
    let answer = caller.answer()?;
    ensure!(
        answer.error.as_deref() == Some("org.freedesktop.DBus.Error.NoReply"),
        "{answer:?}"
    );
    step("killed between two writes");

    service::unset()?;
    let text = bench(&["restore"])?;
    ended_with(&text, 0, "restore")?;
    kernel::is_same(&before, &kernel::changed()?)?;
    step("the next one puts back every byte");

    // And where nobody restores, another Apply keeps what was there at first.
    done(0, &Order::apply("single-core"))?;
    kill_it()?;
    done(0, &Order::apply("single-core"))?;
    done(0, &Order::restore())?;
    kernel::is_same(&before, &kernel::changed()?)?;
    step("an Apply after the crash keeps the originals");
    Ok(())
}

/// Kills the service, and waits until systemd has seen that, so that the next call starts another.
fn kill_it() -> Result<()> {
    let pid = property(UNIT, "MainPID")?.parse()?;
    kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    wait::until_true("systemd has seen it", PATIENCE, || {
        Ok(property(UNIT, "ActiveState")? == "failed")
    })
}

/// Waits until somebody reads the pipe, and answers the other end.
fn reader_waits(what: &str) -> Result<std::fs::File> {
    wait::until(what, PATIENCE * 2, || {
        Ok(Some(
            OpenOptions::new()
                .write(true)
                .custom_flags(O_NONBLOCK)
                .open(HOLD)?,
        ))
    })
}
