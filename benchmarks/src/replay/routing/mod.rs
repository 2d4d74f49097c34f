//! The policy in force and the shadow policy, the daemon's own code, over the same traces.

mod machine;
mod traces;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use guard_policy::settings::{self, Settings, Sources};
use guard_policy::source::Layer;

use machine::{Outcome, replay};
use traces::traces;

/// Parameters of both policies.
#[derive(Clone, Debug, clap::Args)]
pub struct Parameters {
    /// Seconds between two samples
    #[arg(long, default_value_t = 2.0)]
    interval: f64,
    /// What a new sample counts against the shadow's average
    #[arg(long, default_value_t = 0.35)]
    alpha: f64,
    /// Hot samples in a row after which the shadow routes
    #[arg(long, default_value_t = 4)]
    route_samples: u32,
    /// Hot samples in a row after which the policy in force routes
    #[arg(long, default_value_t = 4)]
    baseline_route_samples: u32,
    /// At or above this a sample is hot, in percent of one logical CPU
    #[arg(long, default_value_t = 70.0)]
    threshold: f64,
    /// Below this a sample is low
    #[arg(long, default_value_t = 35.0)]
    clear: f64,
    /// Low samples in a row after which both bring back
    #[arg(long, default_value_t = 10)]
    recovery_samples: u32,
    /// But not before so many seconds since the first of them
    #[arg(long, default_value_t = 20.0)]
    dwell: f64,
}

impl Parameters {
    /// As settings, with the checks that those have.
    fn settings(&self) -> anyhow::Result<Settings> {
        let Parameters {
            interval,
            alpha,
            route_samples,
            baseline_route_samples,
            threshold,
            clear,
            recovery_samples,
            dwell,
        } = self;
        let text = format!(
            "[sampling]\ninterval_sec = {interval:?}\n\
             [routing]\ncpu_threshold = {threshold:?}\nsustained_samples = {baseline_route_samples}\n\
             [recovery]\ncpu_threshold = {clear:?}\nsamples = {recovery_samples}\ndwell_sec = {dwell:?}\n\
             [shadow]\nenabled = true\newma_alpha = {alpha:?}\nroute_threshold = {threshold:?}\n\
             clear_threshold = {clear:?}\nsustained_samples = {route_samples}\n\
             recovery_samples = {recovery_samples}\nrecovery_dwell_sec = {dwell:?}\n"
        );
        let loaded = settings::load(&Sources {
            files: vec![Layer {
                origin: "the options as settings".to_owned(),
                text,
            }],
            env: Vec::new(),
        })?;
        let wrong: Vec<String> = loaded
            .shadow_mistakes
            .iter()
            .map(ToString::to_string)
            .collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(loaded.settings)
    }
}

/// A row for each policy over each trace.
pub fn table(parameters: &Parameters) -> anyhow::Result<String> {
    let settings = Arc::new(parameters.settings()?);
    let mut text = format!(
        "# again: cargo xtask replay routing --interval {} --alpha {} --route-samples {} \
         --baseline-route-samples {} --threshold {} --clear {} --recovery-samples {} --dwell {}\n\
         # times of the first route and of the first return, since the first sample; `none` where there was none\n\
         trace\tpolicy\troute_s\trecover_s\tsamples\n",
        parameters.interval,
        parameters.alpha,
        parameters.route_samples,
        parameters.baseline_route_samples,
        parameters.threshold,
        parameters.clear,
        parameters.recovery_samples,
        parameters.dwell,
    );
    for trace in traces() {
        let (baseline, shadow) = replay(&trace.loads, &settings);
        for (policy, Outcome { route, recover }) in [("baseline", baseline), ("shadow", shadow)] {
            writeln!(
                text,
                "{}\t{policy}\t{}\t{}\t{}",
                trace.name,
                cell(route),
                cell(recover),
                trace.loads.len()
            )?;
        }
    }
    Ok(text)
}

fn cell(at: Option<Duration>) -> String {
    at.map_or("none".to_owned(), |at| at.as_secs_f64().to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        parameters: Parameters,
    }

    fn parameters(line: &[&str]) -> Parameters {
        let words = ["replay"].iter().chain(line);
        Line::try_parse_from(words).expect("it parses").parameters
    }

    /// Route and return of each policy, by trace.
    fn rows(line: &[&str]) -> Vec<String> {
        let text = table(&parameters(line)).expect("sound parameters");
        let row = |line: &str| {
            line.rsplit_once('\t')
                .map(|(row, _)| row.replace('\t', " "))
        };
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .skip(1)
            .filter_map(row)
            .collect()
    }

    #[test]
    fn the_golden_table() {
        assert_eq!(
            rows(&[]),
            [
                "single_spike baseline none none",
                "single_spike shadow none none",
                "two_sample_burst baseline none none",
                "two_sample_burst shadow none none",
                "short_noisy_burst baseline none none",
                "short_noisy_burst shadow 6 30",
                "sustained_90 baseline 6 40",
                "sustained_90 shadow 6 44",
                "alternating_76_62 baseline none none",
                "alternating_76_62 shadow none none",
                "sustained_72 baseline 6 40",
                "sustained_72 shadow 6 42",
                "long_noisy baseline none none",
                "long_noisy shadow 6 62",
            ]
        );
    }

    #[test]
    fn with_five_shadow_samples_a_short_noisy_burst_is_not_routed() {
        let rows = rows(&["--route-samples", "5", "--baseline-route-samples", "4"]);
        for expected in [
            "short_noisy_burst shadow none none",
            "sustained_90 baseline 6 40",
            "sustained_90 shadow 8 44",
            "sustained_72 shadow 8 42",
            "long_noisy shadow 8 62",
        ] {
            assert!(
                rows.iter().any(|row| row == expected),
                "{expected}: {rows:#?}"
            );
        }
    }

    #[test]
    fn every_parameter_counts() {
        let usual = rows(&[]);
        for line in [
            ["--interval", "1"],
            ["--alpha", "1"],
            ["--route-samples", "3"],
            ["--baseline-route-samples", "3"],
            ["--threshold", "60"],
            ["--clear", "10"],
            ["--recovery-samples", "12"],
            ["--dwell", "30"],
        ] {
            assert_ne!(rows(&line), usual, "{line:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_told_with_its_key() {
        for (line, key) in [
            (["--alpha", "0"], "shadow.ewma_alpha"),
            (["--clear", "70"], "shadow.clear_threshold"),
            (["--interval", "0"], "sampling.interval_sec"),
        ] {
            let error = table(&parameters(&line))
                .expect_err("impossible")
                .to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
