//! Names and descriptions of scopes.

use anyhow::ensure;
use workload_guard_dbus::systemd1::error_name;

use super::Fact;
use super::lab::{Lab, fails_as, lives_in};
use crate::harness::load::load;
use crate::harness::outcome::Verdict;
use crate::harness::units;

pub const FACTS: &[Fact] = &[
    ("a scope's name has at most 255 characters", longest_name),
    ("dashes in a scope's name do not nest, other signs are refused", signs),
    (
        "a newline in a description becomes unit settings at the next reload",
        raw_description,
    ),
];

fn longest_name(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    let name = |length: usize| format!("{}.scope", "n".repeat(length - ".scope".len()));
    fails_as(
        lab.scope(&name(256), &[work.pid], &[]),
        error_name::INVALID_ARGS,
    )?;
    lab.moved(&name(255), &[work.pid], &[])?;
    lives_in(&work, &name(255))
}

fn signs(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    for bad in ["a b.scope", "a/b.scope", "a%b.scope", "ä.scope", ".scope"] {
        fails_as(
            lab.scope(bad, &[work.pid], &[]),
            error_name::INVALID_ARGS,
        )?;
    }
    lab.moved("a-b_c:d.1.scope", &[work.pid], &[])?;
    let now = work.now_in()?;
    ensure!(now.ends_with("/app.slice/a-b_c:d.1.scope"), "it is in {now}");
    Ok(())
}

fn raw_description(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    lab.moved(
        "raw.scope",
        &[work.pid],
        &[("Description", "x\n[Scope]\nCPUWeight=3".into())],
    )?;
    units::systemctl(&["daemon-reload"])?;
    let weight = units::property("raw.scope", "CPUWeight")?;
    ensure!(weight == "3", "CPUWeight is {weight}");
    Ok(())
}
