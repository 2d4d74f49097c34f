//! How long `workload-guard status` takes as a whole process, beside `busctl --user status`: in pairs, in turn, on the
//! session of who runs it.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::experiment::stats::{median, quantile};
use crate::print;

/// How it is measured.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs that count
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// The program
    #[arg(long, default_value = "workload-guard")]
    program: String,
    /// Fail when the median of the pairs' ratios is above this
    #[arg(long, value_name = "RATIO")]
    at_most: Option<f64>,
}

/// Pairs that warm up caches, and start a guard that does not run.
const WARM_UP: u32 = 3;

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let peer = ["busctl", "--user", "status"];
    let ours = [options.program.as_str(), "status"];
    let mut pairs = Vec::new();
    for round in 0..WARM_UP + options.pairs {
        // Who is first takes turns.
        let pair = if round % 2 == 0 {
            let theirs = time(&peer)?;
            (theirs, time(&ours)?)
        } else {
            let own = time(&ours)?;
            (time(&peer)?, own)
        };
        if round >= WARM_UP {
            pairs.push(pair);
        }
    }
    let column = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).collect::<Vec<f64>>();
    let (theirs, own) = (column(|pair| pair.0), column(|pair| pair.1));
    let ratios = column(|(theirs, own)| own / theirs);
    let row = |name: &str, values: &[f64], unit: &str| -> Option<String> {
        Some(format!(
            "{name:<24}{:>8.2}{:>8.2}{:>8.2}{unit}\n",
            median(values)?,
            quantile(values, 0.05)?,
            quantile(values, 0.95)?
        ))
    };
    let text = [
        Some(format!(
            "{} pairs{:>25}{:>8}{:>8}\n",
            pairs.len(),
            "median",
            "p5",
            "p95"
        )),
        row("busctl --user status", &theirs, "  ms"),
        row("workload-guard status", &own, "  ms"),
        row("ratio", &ratios, ""),
    ];
    let text: Option<String> = text.into_iter().collect();
    print(&text.context("no pair was measured")?)?;
    if let (Some(most), Some(ratio)) = (options.at_most, median(&ratios)) {
        ensure!(
            ratio <= most,
            "the median of the ratios is {ratio:.2}, above {most}"
        );
    }
    Ok(())
}

/// Milliseconds from the start to the end of a process.
fn time(argv: &[&str]) -> Result<f64> {
    let begin = Instant::now();
    let status = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", argv[0]))?;
    let took = begin.elapsed();
    ensure!(status.success(), "{} ended with {status}", argv.join(" "));
    Ok(took.as_secs_f64() * 1e3)
}
