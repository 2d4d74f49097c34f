//! `bench canary`.

use bench_profile::cpus::CpuSet;
use bench_profile::machine::Machine;
use bench_profile::profile::Profile;
use bench_profile::topology::Topology;
use bench_system::affinity;
use bench_system::canary::{self, Request};
use bench_system::root::Root;

use super::machine;
use crate::error::CliError;

/// Measures, says what came of it, and answers 0 when work spreads, else 1.
pub fn run(
    root: &Root,
    cpus: Option<&CpuSet>,
    divisor: Option<u32>,
    json: bool,
) -> Result<u8, CliError> {
    let topology = machine::topology(root);
    let file = machine::file(root)?;
    let facts = Facts {
        booted: machine::booted(root)?,
        machine: file.as_ref().map(|file| &file.machine),
        topology: topology.as_ref(),
        allowed: affinity::get().map_err(|error| {
            machine::failed(format!("this program's CPUs are not known: {error}"))
        })?,
    };
    let request = facts.request(cpus, divisor)?;
    if !json {
        crate::print(&canary::heading(&request))?;
    }
    let outcome = canary::run(&request).map_err(machine::failed)?;
    if json {
        crate::print(&crate::render::to_json(&outcome))?;
    } else {
        let isolated = topology.map(|topology| topology.isolated);
        crate::print(&canary::text(&outcome, &isolated.unwrap_or_default()))?;
    }
    Ok(u8::from(!outcome.passed()))
}

/// What decides which CPUs are meant.
struct Facts<'a> {
    booted: Option<Profile>,
    machine: Option<&'a Machine>,
    topology: Option<&'a Topology>,
    allowed: CpuSet,
}

impl Facts<'_> {
    fn request(&self, cpus: Option<&CpuSet>, divisor: Option<u32>) -> Result<Request, CliError> {
        let cpus = match (cpus, self.machine, self.booted) {
            (Some(cpus), _, _) => cpus.clone(),
            (None, _, Some(Profile::SingleCore)) => {
                return Err(CliError::Failed(
                    "the single-core profile measures on one CPU, and takes load balancing away from the others on \
                     purpose: there is nothing to spread. The canary belongs to multi-core; --cpus LIST runs it anyway"
                        .into(),
                ));
            }
            (None, Some(machine), None | Some(Profile::MultiCore)) => machine.cpus.bench.clone(),
            // Every thread, but not those of another cpuset.
            (None, _, _) => self.allowed.clone(),
        };
        let divisor = divisor
            .or(self.machine.map(|machine| machine.canary_divisor))
            .unwrap_or(canary::DIVISOR);
        Ok(Request::over(cpus, self.topology, divisor))
    }
}

#[cfg(test)]
mod tests {
    use bench_profile::machine::MachineFile;

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().expect("a list")
    }

    #[test]
    fn the_cpus_are_those_that_the_boot_measures_on() {
        let shipped = include_str!("../../../config/machine.toml");
        let file = MachineFile::parse("machine.toml", shipped).expect("the shipped file");
        let facts = |booted, with_file: bool| Facts {
            booted,
            machine: with_file.then_some(&file.machine),
            topology: None,
            allowed: set("0-3"),
        };
        let cpus = |booted, with_file| {
            facts(booted, with_file)
                .request(None, None)
                .map(|request| request.cpus)
                .map_err(|error| error.to_string())
        };
        assert_eq!(cpus(Some(Profile::MultiCore), true), Ok(set("8-15")));
        assert_eq!(cpus(None, true), Ok(set("8-15")));
        assert_eq!(cpus(None, false), Ok(set("0-3")));
        assert_eq!(cpus(Some(Profile::Unlimited), true), Ok(set("0-3")));
        assert!(
            cpus(Some(Profile::SingleCore), true)
                .expect_err("nothing to spread")
                .contains("one CPU")
        );
        let named = facts(Some(Profile::SingleCore), true)
            .request(Some(&set("1-2")), Some(3))
            .expect("named");
        assert_eq!((named.cpus, named.divisor), (set("1-2"), 3));
    }
}
