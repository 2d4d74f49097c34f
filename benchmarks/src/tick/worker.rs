//! One run, in a process of its own, so that its memory is the sampler's alone.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use guard_policy::engine::Engine;
use guard_policy::event::Event;
use guard_policy::id::Moment;
use guard_policy::rules::RuleSet;
use guard_policy::settings::Settings;
use guard_policy::shadow::Shadow;
use guard_system::cgroup::CgroupFs;
use guard_system::proc::ProcFs;
use guard_system::sampler::Sampler;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// Looks before the measured ones: the first reads every command line.
const WARM_UP: u32 = 2;

/// Arguments of a run.
#[derive(clap::Args)]
pub struct Options {
    /// Control group to look at, relative to the mount
    #[arg(long)]
    cgroup: String,
    /// Looks to measure
    #[arg(long)]
    ticks: u32,
    /// With adaptive routing and the shadow policy
    #[arg(long)]
    learning: bool,
    /// Read every process at each look, idle or not
    #[arg(long)]
    exhaustive: bool,
}

/// What a run used; the Python peer prints the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Processes that the last look showed.
    pub processes: usize,
    /// Looks that were measured.
    pub ticks: u32,
    /// User CPU time of all of them, in microseconds, with that of subprocesses.
    pub user_usec: u64,
    /// System CPU time, likewise.
    pub system_usec: u64,
    /// Resident memory before the first look, in KiB.
    pub rss_before_kib: u64,
    /// Resident memory after the last look, in KiB.
    pub rss_kib: u64,
    /// Calls of systemctl in each look.
    pub systemctl_calls: u32,
}

/// Measures, and prints an [`Outcome`] as JSON.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let mut sampler = Sampler::new(CgroupFs::detect()?, ProcFs::default());
    let mut settings = Settings::default();
    settings.adaptive.enabled = options.learning;
    settings.shadow.enabled = options.learning;
    sampler.read_workloads(options.learning);
    let mut shadow = Shadow::default();
    let mut engine = Engine::new(Arc::new(settings), Arc::new(RuleSet::shipped()));
    let parents = [options.cgroup.clone()];
    let rss_before_kib = rss_kib()?;
    // For the engine as much time passes as between two samples of the daemon.
    let mut now = Duration::ZERO;
    let interval = engine.settings().sampling.interval;
    // What the daemon does at a sample: the look, and the decision.
    let mut tick = || {
        now += interval;
        if options.exhaustive {
            sampler.expect_moved();
        }
        let look = sampler.sample(&parents, &[]);
        let watched = look.watched.first().map_or(0, |(_, count)| *count);
        shadow.sample(&look.sample, &look.inside, Moment(now), engine.settings());
        engine.step(Event::Sample(look.sample), Moment(now));
        watched as usize
    };
    for _ in 0..WARM_UP {
        tick();
    }
    let (user, system) = cpu_usec()?;
    let mut processes = 0;
    for _ in 0..options.ticks {
        processes = tick();
    }
    let (user_after, system_after) = cpu_usec()?;
    let outcome = Outcome {
        processes,
        ticks: options.ticks,
        user_usec: user_after - user,
        system_usec: system_after - system,
        rss_before_kib,
        rss_kib: rss_kib()?,
        systemctl_calls: 0,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// User and system CPU time of this process, in microseconds.
fn cpu_usec() -> anyhow::Result<(u64, u64)> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((
        usage.user_time().num_microseconds() as u64,
        usage.system_time().num_microseconds() as u64,
    ))
}

fn rss_kib() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    let kib = number.context("/proc/self/status has no VmRSS")?.parse()?;
    ensure!(kib > 0, "VmRSS is 0");
    Ok(kib)
}
