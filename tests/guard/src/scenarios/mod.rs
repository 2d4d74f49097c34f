//! The scenarios, one file each.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::harness::outcome::Verdict;
use crate::harness::session::Session;

/// A scenario.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scenario {
    /// Its name: that of its file, with dashes.
    pub name: &'static str,
    /// Where it can run.
    pub tiers: &'static [Tier],
    /// Whether a quick run has it too.
    pub quick: bool,
    /// Whether nothing else may run on the host meanwhile, since it measures time.
    pub exclusive: bool,
    /// Seconds after which it has failed, in a container. A machine may take longer: see [`Tier::Machine`].
    pub timeout_s: u32,
    /// What it does, as the user.
    #[serde(skip)]
    pub run: fn(&Session) -> Verdict,
}

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// A real systemd in a container: everything but budgets.
    Container,
    /// A virtual machine under emulation, in which budgets are enforced.
    Machine,
}

/// Of any container.
const CONTAINER: &[Tier] = &[Tier::Container];
/// Of the machine alone.
const MACHINE: &[Tier] = &[Tier::Machine];
/// Of both.
const BOTH: &[Tier] = &[Tier::Container, Tier::Machine];

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
    known_heavy_routed_at_next_sample,
    burst_of_120ms_not_routed,
}

/// The scenario of that name.
pub fn find(name: &str) -> Result<&'static Scenario> {
    ALL.iter()
        .find(|scenario| scenario.name == name)
        .copied()
        .with_context(|| format!("no scenario is called {name:?}; `guard-scenarios list` has them"))
}

/// Prints all scenarios, one JSON object a line.
pub fn print_list() -> Result<()> {
    for scenario in ALL {
        println!("{}", serde_json::to_string(scenario)?);
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

    #[test]
    fn the_list_has_what_the_testbed_reads() -> Result<()> {
        let line = serde_json::to_value(ALL[0])?;
        assert_eq!(
            line,
            serde_json::json!({
                "name": "known-heavy-routed-at-next-sample",
                "tiers": ["container", "machine"],
                "quick": true,
                "exclusive": false,
                "timeout_s": 60,
            })
        );
        Ok(())
    }
}
