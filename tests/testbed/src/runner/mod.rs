//! `cargo xtask test`: every tier, one line of counts at the end.

mod cargo_test;
mod plan;
mod pool;
mod report;
pub mod scenario;
mod tally;
pub mod tiers;
mod verdict;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::container::ContainerSource;
use crate::guest::Payload;
use crate::machine::Machines;
use crate::payload::{Payloads, Profile, Workspace};
use crate::{host, process, progress};
pub use plan::Args;
use pool::{Job, Sources};
use report::Report;
use scenario::{Scenario, Tier};
use tally::{Outcome, Tally};

/// Runs what `args` asks for and prints the counts as the last line; returns the exit status.
pub fn run(args: &Args) -> Result<u8> {
    let ci = host::is_ci();
    let workspace = Workspace::locate()?;
    let mut tally = Tally::new(ci);
    if args.wants(Tier::Unit) {
        let phase = Phase::begin("unit tests");
        cargo_test::unit(&workspace, &args.only, &mut tally)?;
        phase.end();
    }
    let guests_wanted = [Tier::Container, Tier::Machine, Tier::Loader];
    if guests_wanted.iter().any(|&tier| args.wants(tier)) {
        let report = Report::new(
            tally,
            ci,
            workspace.target_directory.join("testbed-failures"),
        );
        match guests(args, &report) {
            Ok(()) => {}
            Err(error) => report.left_out("guests", Outcome::Failed(format!("{error:#}"))),
        }
        tally = report.tally();
        if !args.quick && args.only.is_empty() {
            let phase = Phase::begin("the guests' own promises");
            let container = args.wants(Tier::Container) && host::is_root();
            let machine = args.wants(Tier::Machine);
            if container || machine {
                cargo_test::promises(&workspace, container, machine, &mut tally)?;
            }
            phase.end();
        }
    }
    println!("{}", tally.line());
    Ok(u8::from(tally.failed > 0))
}

/// The tiers that boot something.
fn guests(args: &Args, report: &Report) -> Result<()> {
    let phase = Phase::begin("build");
    let profile = if args.dev {
        Profile::Dev
    } else {
        Profile::Release
    };
    let payloads = Payloads::new(args.payload.as_deref(), profile)?;
    let scenarios = list(payloads.for_host()?)?;
    phase.end();
    let selected = |tier| {
        if args.wants(tier) {
            args.select(&scenarios, tier)
        } else {
            Vec::new()
        }
    };
    let container = selected(Tier::Container);
    let machine = selected(Tier::Machine);
    let loader = selected(Tier::Loader);
    if container.is_empty() && machine.is_empty() && loader.is_empty() {
        bail!(
            "no scenario matches the command line; `guard-scenarios list` and `bench-scenarios list` have {}",
            scenarios.len()
        );
    }
    if !container.is_empty() {
        container_tier(&args.container_suites(), &container, &payloads, report);
    }
    if !machine.is_empty() {
        machine_tier("machine", tiers::machine, &machine, &payloads, report);
    }
    if !loader.is_empty() {
        machine_tier("loader", tiers::loader, &loader, &payloads, report);
    }
    Ok(())
}

fn list(payload: &Payload) -> Result<Vec<Scenario>> {
    let mut text = String::new();
    for program in scenario::PROGRAMS {
        text += &process::output_of(Command::new(payload.dir().join(program)).arg("list"))?;
    }
    scenario::parse_list(&text).with_context(|| format!("the lists of {:?}", scenario::PROGRAMS))
}

fn container_tier(suites: &[&str], scenarios: &[&Scenario], payloads: &Payloads, report: &Report) {
    if !host::is_root() {
        // Not a matter of hardware: whoever sets up the machine can give it.
        report.left_out("container", Outcome::Skipped("needs root".into()));
        return;
    }
    let phase = Phase::begin("container tier: images");
    let mut workers: Vec<Sources> = (0..tiers::parallel_containers())
        .map(|_| Vec::new())
        .collect();
    for suite in suites {
        match ContainerSource::new(suite, payloads) {
            Ok(source) => {
                for worker in &mut workers {
                    worker.push(Box::new(source.clone()));
                }
            }
            Err(error) => {
                report.left_out(
                    &format!("container/{suite}"),
                    Outcome::Failed(format!("{error:#}")),
                );
            }
        }
    }
    phase.end();
    let sources = workers.first().map_or(0, Vec::len);
    let jobs = scenarios
        .iter()
        .flat_map(|scenario| (0..sources).map(|source| Job { source, scenario }))
        .collect();
    let phase = Phase::begin("container tier");
    pool::run(workers, jobs, report);
    phase.end();
}

fn machine_tier(
    name: &str,
    source: fn(&Payloads) -> Result<Machines>,
    scenarios: &[&Scenario],
    payloads: &Payloads,
    report: &Report,
) {
    let phase = Phase::begin(format!("{name} tier: image and snapshot"));
    let source = source(payloads);
    phase.end();
    match source {
        Ok(source) => {
            let phase = Phase::begin(format!("{name} tier"));
            let jobs = scenarios
                .iter()
                .map(|scenario| Job {
                    source: 0,
                    scenario,
                })
                .collect();
            pool::run(vec![vec![Box::new(source)]], jobs, report);
            phase.end();
        }
        Err(error) => report.left_out(name, Outcome::Failed(format!("{error:#}"))),
    }
}

/// A part of the run, with the time that it took.
struct Phase {
    name: String,
    begin: Instant,
}

impl Phase {
    fn begin(name: impl Into<String>) -> Self {
        let name = name.into();
        println!("== {name}");
        Self {
            name,
            begin: Instant::now(),
        }
    }

    fn end(self) {
        println!(
            "== {}: {}",
            self.name,
            progress::seconds(self.begin.elapsed())
        );
    }
}
