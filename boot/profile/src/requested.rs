//! What a profile asks of a running machine, beyond its kernel's command line.

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::machine::Machine;
use crate::profile::Profile;

/// What a caller may have otherwise than the machine file has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `--boost=on|off`.
    pub boost: Option<bool>,
    /// `--smt=on|off`.
    pub smt: Option<bool>,
    /// `--keep-housekeeping-cores`: nothing is parked.
    pub keep_housekeeping: bool,
}

/// The state that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// By which profile.
    pub profile: Profile,
    /// With which options.
    pub options: Options,
    /// CPUs with governor and energy preference `performance`.
    pub fast: Fast,
    /// Whether boost is on, and whether that is to be brought about or only to be found.
    pub boost: Boost,
    /// Whether SMT is on.
    pub smt: bool,
    /// Where interrupts, unbound workqueues and the watchdog go; `None` leaves them alone.
    pub housekeeping: Option<CpuSet>,
    /// CPUs that go offline.
    pub parked: CpuSet,
}

/// Which CPUs get the performance policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fast {
    /// These.
    Cpus(CpuSet),
    /// Each that is online.
    Online,
}

/// Boost (turbo).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// Whether it is on.
    pub on: bool,
    /// Turbo is part of what is measured and left alone, but for multi-core's steadiness or where
    /// somebody asked for another value.
    pub written: bool,
}

/// Kernel settings, by sysctl name, that are the same in each profile: no memory migration, no grouping
/// by session, statistics every two minutes, and `perf` usable. The last two are relaxed since these
/// boots are headless, single-user and offline.
pub const SYSCTLS: [(&str, &str); 5] = [
    ("kernel.numa_balancing", "0"),
    ("kernel.sched_autogroup_enabled", "0"),
    ("vm.stat_interval", "120"),
    ("kernel.perf_event_paranoid", "-1"),
    ("kernel.kptr_restrict", "0"),
];

/// Units that undo what is asked for, and so are stopped: it moves interrupts back.
pub const STOPPED: [&str; 1] = ["irqbalance.service"];

impl Requested {
    /// What `profile` asks of `machine`.
    pub fn of(machine: &Machine, profile: Profile, options: Options) -> Self {
        let cpus = &machine.cpus;
        let switches = machine.switches(profile);
        let on = options.boost.unwrap_or(switches.boost);
        let parked = match profile {
            Profile::MultiCore if !options.keep_housekeeping => cpus.parked.clone(),
            _ => CpuSet::default(),
        };
        Requested {
            profile,
            options,
            fast: match profile {
                Profile::SingleCore => Fast::Cpus(CpuSet::from(cpus.single_core)),
                Profile::MultiCore => Fast::Cpus(cpus.bench.clone()),
                Profile::Unlimited => Fast::Online,
            },
            boost: Boost {
                on,
                written: profile == Profile::MultiCore || !on || options.boost.is_some(),
            },
            smt: options.smt.unwrap_or(switches.smt),
            housekeeping: profile
                .isolates()
                .then(|| cpus.housekeeping.without(&parked)),
            parked,
        }
    }
}
