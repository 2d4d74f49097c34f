//! What the members do, once somebody may. It blocks: call it on a thread of its own.

use bench_profile::knob::{Knob, Verdict};
use bench_profile::machine::Machine;
use bench_profile::profile::Profile;
use bench_profile::requested::{Options, Requested};
use bench_system::apply::{self, ApplyError};
use bench_system::canary::{self, Request};
use bench_system::hands::{Hands, Live, NoUnits};
use bench_system::root::Root;
use bench_system::status::{self, Facts, Level};
use bench_system::{boot, machine, originals, topology};
use workload_guard_dbus::BenchError;
use workload_guard_dbus::bench_types::CheckRow;

use crate::rows;
use crate::systemd::Systemd;

/// Prepares the machine below a root.
#[derive(Clone, Debug)]
pub struct Preparer {
    root: Root,
    /// None for a recorded tree, which has no units and no CPUs that could run anything.
    systemd: Option<Systemd>,
}

impl Preparer {
    /// For `root`; with `systemd` where that is the running machine.
    pub fn new(root: Root, systemd: Option<Systemd>) -> Preparer {
        Preparer { root, systemd }
    }

    /// The machine's files.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// systemd, where this is the running machine.
    pub fn systemd(&self) -> Option<&Systemd> {
        self.systemd.as_ref()
    }

    /// The profile of this boot.
    pub fn booted(&self) -> Result<Option<Profile>, BenchError> {
        boot::profile(&self.root).map_err(|error| BenchError::WrongProfile(error.to_string()))
    }

    /// What was applied and not restored.
    pub fn applied(&self) -> Option<Profile> {
        match originals::load(&self.root) {
            Ok(originals) => originals.map(|originals| originals.requested.profile),
            Err(error) => {
                log::warn!("{error}");
                None
            }
        }
    }

    /// Brings the machine into the state.
    pub fn apply(&self, profile: Profile, options: Options) -> Result<Vec<Knob>, BenchError> {
        let file = machine::load(&self.root).map_err(invalid)?;
        let topology = topology::read(&self.root).map_err(invalid)?;
        file.suits(&topology).map_err(invalid)?;
        let requested = Requested::of(&file.machine, profile, options);
        let knobs = apply::apply(&self.root, &mut *self.hands(), &requested).map_err(refused)?;
        rows::log(&knobs);
        let knobs = all_or_none(
            knobs,
            &format!("the machine is not in the state of {profile}"),
        )?;
        if profile == Profile::MultiCore && self.systemd.is_some() {
            self.prove(&file.machine)?;
        }
        Ok(knobs)
    }

    /// Puts it back.
    pub fn restore(&self) -> Result<Vec<Knob>, BenchError> {
        let knobs = apply::restore(&self.root, &mut *self.hands())
            .map_err(|error| BenchError::KnobFailed(error.to_string()))?;
        rows::log(&knobs);
        all_or_none(knobs, "not everything is back as it was")
    }

    /// Compares it with `profile`.
    pub fn check(&self, profile: Profile) -> (bool, Vec<CheckRow>) {
        let findings = status::judge(&Facts::gather(&self.root), profile);
        let ok = findings
            .iter()
            .all(|finding| finding.level != Level::Differs);
        (ok, findings.into_iter().map(rows::check).collect())
    }

    fn hands(&self) -> Box<dyn Hands> {
        match &self.systemd {
            Some(systemd) => Box::new(Live::new(self.root.clone(), systemd.clone())),
            None => Box::new(Live::new(self.root.clone(), NoUnits)),
        }
    }

    /// A pool that sits on one CPU is what multi-core is there to prevent.
    fn prove(&self, machine: &Machine) -> Result<(), BenchError> {
        let failed = |error: &dyn std::fmt::Display| BenchError::CanaryFailed(error.to_string());
        let topology = topology::read(&self.root).map_err(|error| failed(&error))?;
        let request = Request::over(
            machine.cpus.bench.clone(),
            Some(&topology),
            machine.canary_divisor,
        );
        let outcome = canary::run(&request).map_err(|error| failed(&error))?;
        let said = canary::heading(&request) + &canary::text(&outcome, &topology.isolated);
        if !outcome.passed() {
            return Err(failed(&format_args!(
                "{said}Everything else is set; Restore puts it back"
            )));
        }
        log::info!("{}", said.trim_end());
        Ok(())
    }
}

fn invalid(error: impl std::fmt::Display) -> BenchError {
    BenchError::InvalidSettings(format!("{error}; nothing was changed"))
}

fn refused(error: ApplyError) -> BenchError {
    BenchError::KnobFailed(error.to_string())
}

/// Success means that everything is as asked.
fn all_or_none(knobs: Vec<Knob>, otherwise: &str) -> Result<Vec<Knob>, BenchError> {
    let failed: Vec<String> = knobs
        .iter()
        .filter_map(|knob| match &knob.verdict {
            Verdict::Differs(why) => Some(format!("\n  {} ({}): {why}", knob.id, knob.what)),
            _ => None,
        })
        .collect();
    if failed.is_empty() {
        return Ok(knobs);
    }
    Err(BenchError::KnobFailed(format!(
        "{otherwise}:{}\nWhat was there before is kept in {}, and Restore puts it back",
        failed.concat(),
        originals::FILE
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(id: &str, verdict: Verdict) -> Knob {
        Knob {
            id: id.into(),
            what: format!("proc/{id}"),
            requested: None,
            effective: None,
            original: None,
            verdict,
        }
    }

    #[test]
    fn only_what_differs_is_a_failure_and_each_such_is_named() {
        let fine = vec![
            knob("a", Verdict::Ok),
            knob("b", Verdict::Unsupported("no driver".into())),
            knob("c", Verdict::OverriddenBy("its driver".into())),
        ];
        assert_eq!(all_or_none(fine.clone(), "no"), Ok(fine.clone()));
        let mut broken = fine;
        broken.push(knob("d", Verdict::Differs("it is 1".into())));
        broken.push(knob("e", Verdict::Differs("refused".into())));
        let text = all_or_none(broken, "not in the state")
            .expect_err("two differ")
            .text();
        assert!(
            text.starts_with("not in the state:\n  d (proc/d): it is 1\n  e (proc/e): refused\n"),
            "{text}"
        );
        assert!(text.contains(originals::FILE), "{text}");
    }
}
