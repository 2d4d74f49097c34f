//! Which tests a command line asks for. Pure.

use std::path::PathBuf;

use super::scenario::{Scenario, Tier};
use crate::container::SUITES;

/// Arguments of `cargo xtask test`.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct Args {
    /// Only the unit tests and the quick scenarios in one container: for work in progress.
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Also the scenarios that take long.
    #[arg(long)]
    pub full: bool,
    /// Only these tiers.
    #[arg(long = "tier", value_name = "TIER")]
    pub tiers: Vec<Tier>,
    /// Only these suites of the container tier.
    #[arg(long = "suite", value_name = "SUITE", value_parser = clap::builder::PossibleValuesParser::new(SUITES))]
    pub suites: Vec<String>,
    /// Only scenarios whose name contains one of these; leaves out the unit tier unless it is asked for.
    #[arg(long, value_name = "SUBSTRING", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Tests a development build of the product: quicker to build, another speed.
    #[arg(long)]
    pub dev: bool,
    /// Builds nothing: shows the guests this folder as the product.
    #[arg(long, value_name = "FOLDER", conflicts_with = "dev")]
    pub payload: Option<PathBuf>,
}

impl Args {
    /// Whether the tier is to run.
    pub fn wants(&self, tier: Tier) -> bool {
        if !self.tiers.is_empty() {
            return self.tiers.contains(&tier);
        }
        match tier {
            Tier::Unit => self.only.is_empty(),
            Tier::Container => true,
            Tier::Machine | Tier::Loader => !self.quick,
        }
    }

    /// The container tier's suites, in the order of [`SUITES`].
    pub fn container_suites(&self) -> Vec<&'static str> {
        SUITES
            .iter()
            .copied()
            .filter(|&suite| {
                if self.suites.is_empty() {
                    !self.quick || suite == "trixie"
                } else {
                    self.suites.iter().any(|wanted| wanted == suite)
                }
            })
            .collect()
    }

    /// The scenarios to run in a tier.
    pub fn select<'a>(&self, scenarios: &'a [Scenario], tier: Tier) -> Vec<&'a Scenario> {
        scenarios
            .iter()
            .filter(|scenario| scenario.tiers.contains(&tier))
            .filter(|scenario| scenario.quick || !self.quick)
            .filter(|scenario| self.full || !scenario.full)
            .filter(|scenario| {
                self.only.is_empty() || self.only.iter().any(|part| scenario.name.contains(part))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, quick: bool, full: bool) -> Scenario {
        Scenario {
            name: name.into(),
            program: "guard-scenarios".into(),
            tiers: vec![Tier::Container],
            quick,
            full,
            exclusive: false,
            boots: 1,
            timeout_s: 1,
        }
    }

    fn names(args: &Args, tier: Tier) -> Vec<String> {
        let all = [
            scenario("slow", false, false),
            scenario("swift", true, false),
            scenario("soak", false, true),
        ];
        args.select(&all, tier)
            .iter()
            .map(|scenario| scenario.name.clone())
            .collect()
    }

    #[test]
    fn by_default_everything_but_what_is_left_to_full() {
        let args = Args::default();
        assert!(
            [Tier::Unit, Tier::Container, Tier::Machine, Tier::Loader]
                .iter()
                .all(|&tier| args.wants(tier))
        );
        assert_eq!(args.container_suites(), SUITES);
        assert_eq!(names(&args, Tier::Container), ["slow", "swift"]);
        assert!(names(&args, Tier::Machine).is_empty());
        let full = Args {
            full: true,
            ..Args::default()
        };
        assert_eq!(names(&full, Tier::Container), ["slow", "swift", "soak"]);
    }

    #[test]
    fn quick_is_one_container_and_quick_scenarios() {
        let args = Args {
            quick: true,
            ..Args::default()
        };
        assert!(
            args.wants(Tier::Unit) && args.wants(Tier::Container) && !args.wants(Tier::Machine)
        );
        assert_eq!(args.container_suites(), ["trixie"]);
        assert_eq!(names(&args, Tier::Container), ["swift"]);
    }

    #[test]
    fn only_leaves_the_unit_tier_out_unless_it_is_asked_for() {
        let mut args = Args {
            only: vec!["ow".into()],
            ..Args::default()
        };
        assert!(!args.wants(Tier::Unit));
        assert_eq!(names(&args, Tier::Container), ["slow"]);
        args.only.push("wif".into());
        assert_eq!(names(&args, Tier::Container), ["slow", "swift"]);
        args.tiers = vec![Tier::Unit];
        assert!(args.wants(Tier::Unit) && !args.wants(Tier::Container));
    }
}
