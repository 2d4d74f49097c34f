//! The scenarios, one file each.

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};

use crate::harness::outcome::Verdict;

/// A scenario.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scenario {
    /// Its name: that of its file, with dashes.
    pub name: &'static str,
    /// Where it can run.
    pub tiers: &'static [Tier],
    /// Whether a quick run has it too.
    pub quick: bool,
    /// Whether it is left to a full run.
    pub full: bool,
    /// Whether nothing else may run on the host meanwhile, since it measures.
    pub exclusive: bool,
    /// Seconds after which it is killed and has failed, in each boot.
    pub timeout_s: u32,
    /// What it does, as root, in each boot of the guest. All but the last end with a reboot, as [`boots`] has it.
    ///
    /// [`boots`]: crate::harness::boots
    #[serde(serialize_with = "count")]
    pub boots: &'static [fn() -> Verdict],
}

impl Scenario {
    /// Its name, with the boot where there are several.
    pub fn named(&self, boot: usize) -> String {
        match self.boots.len() {
            1 => self.name.to_owned(),
            boots => format!("{}, boot {} of {boots}", self.name, boot + 1),
        }
    }
}

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// A real systemd in a container: no knob of the kernel may be touched.
    Container,
    /// A virtual machine, with a kernel of its own.
    Machine,
    /// One that boots through UEFI and a boot loader, and can be rebooted.
    Loader,
}

/// Of any container.
const CONTAINER: &[Tier] = &[Tier::Container];
/// Of every guest.
const ANY: &[Tier] = &[Tier::Container, Tier::Machine];
/// Of the machine alone.
const MACHINE: &[Tier] = &[Tier::Machine];
/// Of the machine that boots by itself.
const LOADER: &[Tier] = &[Tier::Loader];

fn count<S: Serializer>(boots: &&[fn() -> Verdict], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(boots.len() as u64)
}

/// Declares the modules and the list in one go.
macro_rules! scenarios {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+
        /// Every scenario.
        pub const ALL: &[&Scenario] = &[$(&$module::SCENARIO),+];
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

scenarios! {
    bench_apply_and_restore,
    bench_apply_killed,
    bench_boot_canary_names_the_cause,
    bench_boot_entries_over_the_bus,
    bench_boot_grub,
    bench_boot_multi_core_once,
    bench_boot_single_core_and_unlimited,
    bench_bus_asks_who_calls,
    bench_bus_one_change_at_a_time,
    bench_canary_both_ways,
    bench_install_and_uninstall,
    bench_prep_at_boot,
    bench_run_audits_interrupts,
    bench_service_ends_when_idle,
    bench_status_anywhere,
    packages_come_and_go,
}

/// The scenario of that name.
pub fn find(name: &str) -> Result<&'static Scenario> {
    ALL.iter()
        .find(|scenario| scenario.name == name)
        .copied()
        .with_context(|| format!("no scenario is called {name:?}; `bench-scenarios list` has them"))
}

/// Prints all scenarios, one JSON object a line.
pub fn print_list() -> Result<()> {
    for scenario in ALL {
        let mut line = serde_json::to_value(scenario)?;
        line["program"] = "bench-scenarios".into();
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_called_as_its_file() {
        for (scenario, module) in ALL.iter().zip(MODULES) {
            assert_eq!(scenario.name.replace('-', "_"), *module);
        }
    }
}
