//! Jobs that move, and the signals around them.

use anyhow::{Context, Result, bail, ensure};
use futures_lite::StreamExt;
use workload_guard_dbus::systemd1::error_name;
use zbus::{MatchRule, MessageStream, block_on};
use zvariant::OwnedObjectPath;

use super::Fact;
use super::lab::{Lab, fails_as, lives_in, name_of};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::root;
use crate::harness::units;

pub const FACTS: &[Fact] = &[
    (
        "a scope can be made again once its old unit is unloaded; before that the refusal is UnitExists",
        made_again,
    ),
    (
        "a job that fails for one process has moved the others",
        failed_after_moving,
    ),
    (
        "one dead PID fails the whole call, and nothing is moved",
        one_dead_pid,
    ),
    (
        "processes are attached to delegated units only",
        attach_needs_delegation,
    ),
    (
        "a reload announces every unit as removed, between Reloading(true) and Reloading(false)",
        reload_removes_all,
    ),
];

fn made_again(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    let source = work.unit.clone();
    let mut refused = 0;
    for round in 0..10 {
        let away = format!("away-{round}.scope");
        lab.moved(&away, &[work.pid], &[])?;
        if round % 2 == 0 {
            // At once: it may be refused, and then by that name.
            match lab.scope(&source, &[work.pid], &[]) {
                Ok(result) => {
                    ensure!(result == "done", "round {round}: {result}");
                    continue;
                }
                Err(error) => {
                    let name = name_of(&error);
                    ensure!(name == error_name::UNIT_EXISTS, "round {round}: {name}");
                    refused += 1;
                }
            }
        }
        lab.unloaded(&source)?;
        lab.moved(&source, &[work.pid], &[])
            .with_context(|| format!("round {round}, after it was unloaded"))?;
    }
    step(format_args!("of 5 that did not wait, {refused} were refused"));
    lives_in(&work, &source)
}

fn failed_after_moving(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    let foreign = root::spawn("exec sleep infinity")?;
    let result = lab.scope("partly.scope", &[work.pid, foreign], &[])?;
    root::ok(&["kill", "-KILL", &foreign.to_string()])?;
    ensure!(result == "failed", "the job ended as {result}");
    ensure!(
        work.now_in()?.ends_with("partly.scope"),
        "our process is in {}",
        work.now_in()?
    );
    ensure!(
        units::active_state("partly.scope")? == "failed",
        "the scope is {}",
        units::active_state("partly.scope")?
    );
    lab.moved("adopted.scope", &[work.pid], &[])?;
    lives_in(&work, "adopted.scope")?;
    units::systemctl(&["reset-failed"]).map(drop)
}

fn one_dead_pid(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    let dead = load(&["spin", "--idle"]).start()?.pid;
    fails_as(
        lab.scope("half.scope", &[work.pid, dead], &[]),
        error_name::NO_SUCH_PROCESS,
    )?;
    lives_in(&work, &work.unit)
}

fn attach_needs_delegation(lab: &Lab) -> Verdict {
    let plain = load(&["spin", "--idle"]).start()?;
    let open = load(&["spin", "--idle"]).property("Delegate=yes").start()?;
    let work = load(&["spin", "--idle"]).start()?;
    let attach = |unit: &str| block_on(lab.systemd.attach_processes_to_unit(unit, "", &[work.pid]));
    fails_as(attach(&plain.unit), error_name::INVALID_ARGS)?;
    fails_as(attach("app.slice"), error_name::INVALID_ARGS)?;
    attach(&open.unit)?;
    lives_in(&work, &open.unit)
}

fn reload_removes_all(lab: &Lab) -> Result<()> {
    let work = load(&["spin", "--idle"]).start()?;
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .interface("org.freedesktop.systemd1.Manager")?
        .build();
    let (removed_inside, told_new) = block_on(async {
        let bus = lab.systemd.inner().connection();
        let mut signals = MessageStream::for_match_rule(rule, bus, Some(4096)).await?;
        let reload = lab.systemd.reload();
        let read = async {
            let (mut reloading, mut removed, mut new) = (false, false, false);
            while let Some(message) = signals.next().await {
                let message = message?;
                let member = message.header().member().map(|name| name.to_string());
                match member.as_deref() {
                    Some("Reloading") => {
                        let begins: bool = message.body().deserialize()?;
                        if !begins && reloading {
                            return Ok((removed, new));
                        }
                        reloading = begins;
                    }
                    Some(kind @ ("UnitRemoved" | "UnitNew")) => {
                        let (unit, _): (String, OwnedObjectPath) = message.body().deserialize()?;
                        if unit == work.unit && reloading {
                            removed |= kind == "UnitRemoved";
                            new |= kind == "UnitNew";
                        }
                    }
                    _ => {}
                }
            }
            bail!("the bus went away")
        };
        let (done, seen) = futures_lite::future::zip(reload, read).await;
        done?;
        seen
    })?;
    ensure!(
        removed_inside && told_new,
        "UnitRemoved inside: {removed_inside}, UnitNew inside: {told_new}"
    );
    ensure!(proc::alive(work.pid), "the unit's process has ended");
    Ok(())
}
