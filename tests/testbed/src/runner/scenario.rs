//! What `guard-scenarios list` and `bench-scenarios list` say about their scenarios.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Where tests run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// `cargo test`, on the host.
    Unit,
    /// systemd-nspawn.
    Container,
    /// QEMU, which loads the kernel itself.
    Machine,
    /// QEMU with UEFI, a boot loader and an EFI system partition: it can be rebooted.
    Loader,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, for `PROGRAM run`.
    pub name: String,
    /// The program of the payload that has it.
    #[serde(default = "guard_scenarios")]
    pub program: String,
    /// The tiers that it can run in.
    pub tiers: Vec<Tier>,
    /// Whether it is part of `--quick`.
    #[serde(default)]
    pub quick: bool,
    /// Whether it is left to `--full`.
    #[serde(default)]
    pub full: bool,
    /// Whether nothing else may run beside it: it measures times.
    #[serde(default)]
    pub exclusive: bool,
    /// How many boots of one guest it takes; `PROGRAM run NAME --boot N` is run in each, counted from 0, and all but the
    /// last end with a reboot.
    #[serde(default = "one")]
    pub boots: u32,
    /// Seconds after which it is killed and has failed, in each boot.
    pub timeout_s: u64,
}

/// The programs of the payload that have scenarios.
pub const PROGRAMS: [&str; 2] = ["guard-scenarios", "bench-scenarios"];

fn one() -> u32 {
    1
}

fn guard_scenarios() -> String {
    PROGRAMS[0].to_owned()
}

impl Scenario {
    /// [`Self::timeout_s`] as a duration.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }
}

/// Reads a list: one JSON object a line.
pub fn parse_list(text: &str) -> Result<Vec<Scenario>> {
    let mut names = HashSet::new();
    let mut scenarios = Vec::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let number = index + 1;
        let scenario: Scenario = serde_json::from_str(line)
            .with_context(|| format!("line {number} of the scenario list: {line}"))?;
        if !names.insert(scenario.name.clone()) {
            bail!(
                "line {number} of the scenario list: a second {}",
                scenario.name
            );
        }
        if scenario.tiers.is_empty() || scenario.tiers.contains(&Tier::Unit) {
            bail!(
                "line {number} of the scenario list: {} needs at least one of the tiers container, machine and loader",
                scenario.name
            );
        }
        if scenario.boots != 1 && (scenario.boots == 0 || scenario.tiers != [Tier::Loader]) {
            bail!(
                "line {number} of the scenario list: {} takes {} boots, which the tier loader alone has",
                scenario.name,
                scenario.boots
            );
        }
        scenarios.push(scenario);
    }
    if scenarios.is_empty() {
        bail!("the scenario list is empty");
    }
    Ok(scenarios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_and_without_the_optional_fields() {
        let list = parse_list(
            "{\"name\":\"a\",\"tiers\":[\"container\",\"machine\"],\"quick\":true,\"timeout_s\":60}\n\
             {\"name\":\"b\",\"tiers\":[\"machine\"],\"timeout_s\":5,\"exclusive\":true,\"full\":true}\n",
        )
        .unwrap();
        assert!(list[0].quick && !list[0].exclusive && !list[0].full);
        assert_eq!(list[0].tiers, [Tier::Container, Tier::Machine]);
        assert!(!list[1].quick && list[1].exclusive && list[1].full);
        assert_eq!(list[1].timeout(), Duration::from_secs(5));
        assert_eq!(list[0].program, "guard-scenarios");
        assert_eq!(list[0].boots, 1);
        let list =
            parse_list(r#"{"name":"a","tiers":["loader"],"boots":3,"timeout_s":60}"#).unwrap();
        assert_eq!(list[0].boots, 3);
    }

    #[test]
    fn mistakes_name_the_line() {
        for (line, word) in [
            (
                r#"{"name":"a","tiers":["container"],"timeout_s":1,"quik":true}"#,
                "line 2",
            ),
            (
                r#"{"name":"first","tiers":["container"],"timeout_s":1}"#,
                "second first",
            ),
            (
                r#"{"name":"a","tiers":[],"timeout_s":1}"#,
                "needs at least one of the tiers",
            ),
            (
                r#"{"name":"a","tiers":["unit"],"timeout_s":1}"#,
                "needs at least one of the tiers",
            ),
            (
                r#"{"name":"a","tiers":["machine"],"boots":2,"timeout_s":1}"#,
                "the tier loader alone",
            ),
            (
                r#"{"name":"a","tiers":["loader"],"boots":0,"timeout_s":1}"#,
                "takes 0 boots",
            ),
            (r#"{"name":"a","tiers":["cloud"],"timeout_s":1}"#, "line 2"),
            ("not json", "line 2"),
        ] {
            let text =
                format!("{{\"name\":\"first\",\"tiers\":[\"machine\"],\"timeout_s\":1}}\n{line}\n");
            let error = format!("{:#}", parse_list(&text).unwrap_err());
            assert!(error.contains(word), "{line}: {error}");
        }
        assert!(parse_list("\n").is_err());
    }
}
