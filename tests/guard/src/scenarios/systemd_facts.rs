//! The facts about systemd that decide how the guard moves work. The guard is not in this: when a version of
//! systemd behaves differently, this is what says so first.

mod identity;
mod jobs;
mod lab;
mod names;
mod ties;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use lab::Lab;

pub const SCENARIO: Scenario = Scenario {
    name: "systemd-facts",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// A fact in words, and its proof.
type Fact = (&'static str, fn(&Lab) -> Verdict);

fn run(session: &Session) -> Verdict {
    step(format_args!("systemd {}", units::systemd_version(session)?));
    let lab = Lab::new(session)?;
    let mut broken = Vec::new();
    let facts = [ties::FACTS, jobs::FACTS, names::FACTS, identity::FACTS].concat();
    for (words, proof) in &facts {
        match proof(&lab) {
            Ok(()) => step(format_args!("holds: {words}")),
            Err(error) => {
                step(format_args!("DOES NOT HOLD: {words}: {error:#}"));
                broken.push(*words);
            }
        }
    }
    ensure!(
        broken.is_empty(),
        "{} of {} facts do not hold: {broken:#?}",
        broken.len(),
        facts.len()
    );
    Ok(())
}
