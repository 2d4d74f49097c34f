//! Compares the machine with a profile. Pure.

use bench_profile::command_line;
use bench_profile::cpus::CpuSet;
use bench_profile::profile::Profile;
use bench_profile::requested::{Fast, Options, Requested, SYSCTLS};
use serde::Serialize;

use super::facts::Facts;

/// How a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As the profile asks.
    Ok,
    /// Worth knowing, and no fault.
    Note,
    /// Not as the profile asks.
    Differs,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable, short name: `smt`, `governor`.
    pub id: &'static str,
    /// How it counts.
    pub level: Level,
    /// What was seen, with what was asked where it differs.
    pub text: String,
}

/// Everything that `profile` asks, compared with what is there. Nothing is left out: a person who mends one thing
/// should not learn of the next only then.
pub fn judge(facts: &Facts, profile: Profile) -> Vec<Finding> {
    let mut all = Findings(Vec::new());
    match &facts.booted {
        Ok(Some(booted)) if *booted == profile => {
            all.ok("profile", format!("booted into {profile}"))
        }
        Ok(Some(booted)) => all.differs("profile", format!("booted into {booted}, not {profile}")),
        Ok(None) => all.differs(
            "profile",
            format!("a normal boot, not {profile}: choose its entry in the boot menu"),
        ),
        Err(error) => all.differs("profile", error.clone()),
    }
    let file = match &facts.machine {
        Ok(file) => file,
        Err(error) => {
            all.differs("machine-file", error.clone());
            return all.0;
        }
    };
    let requested = Requested::of(&file.machine, profile, Options::default());
    for difference in command_line::differences(&facts.command_line, &file.machine, profile) {
        all.differs("command-line", difference);
    }
    match &facts.topology {
        Ok(topology) => {
            match file.suits(topology) {
                Ok(()) => all.ok(
                    "machine-file",
                    "it suits this machine, and the CPUs to measure on share one L3",
                ),
                Err(mistakes) => all.differs("machine-file", mistakes.to_string()),
            }
            cpus(&mut all, facts, &requested);
        }
        Err(error) => all.differs("cpus", error.clone()),
    }
    frequency(&mut all, facts, &requested);
    masks(&mut all, facts, &requested);
    memory_and_settings(&mut all, facts);
    for unit in &facts.running {
        let masked = file.machine.masked_units.contains(unit);
        if masked {
            all.differs("unit", format!("{unit} runs, though the profile masks it"));
        } else {
            all.note("unit", format!("{unit} runs and is known to disturb"));
        }
    }
    all.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, level: Level, id: &'static str, text: impl Into<String>) {
        self.0.push(Finding {
            id,
            level,
            text: text.into(),
        });
    }

    fn ok(&mut self, id: &'static str, text: impl Into<String>) {
        self.add(Level::Ok, id, text);
    }

    fn note(&mut self, id: &'static str, text: impl Into<String>) {
        self.add(Level::Note, id, text);
    }

    fn differs(&mut self, id: &'static str, text: impl Into<String>) {
        self.add(Level::Differs, id, text);
    }

    fn expect(&mut self, met: bool, id: &'static str, text: String) {
        self.add(if met { Level::Ok } else { Level::Differs }, id, text);
    }
}

fn cpus(all: &mut Findings, facts: &Facts, requested: &Requested) {
    let (Ok(topology), Ok(file)) = (&facts.topology, &facts.machine) else {
        return;
    };
    let cpus = &file.machine.cpus;
    let online = &topology.online;
    if requested.profile.isolates() {
        let parked = cpus.expected_online.without(&requested.parked);
        all.expect(
            *online == parked || *online == cpus.expected_online,
            "online",
            if parked == cpus.expected_online {
                format!("online: {online}; expected: {parked}")
            } else {
                format!(
                    "online: {online}; expected: {parked}, or {} where none is parked",
                    cpus.expected_online
                )
            },
        );
        let isolated = cpus.bench.and(&topology.isolated);
        match requested.profile {
            Profile::SingleCore => all.expect(
                isolated == cpus.bench,
                "isolated",
                format!(
                    "out of load balancing: {}; expected: {}",
                    shown(&isolated),
                    cpus.bench
                ),
            ),
            _ => all.expect(
                isolated.is_empty(),
                "isolated",
                format!(
                    "out of load balancing: {}; expected: none, or a thread pool stays on one CPU",
                    shown(&isolated)
                ),
            ),
        }
        all.expect(
            cpus.bench.is_subset(&facts.nohz_full),
            "nohz_full",
            format!(
                "without a timer tick: {}; expected: {}",
                shown(&facts.nohz_full),
                cpus.bench
            ),
        );
    } else {
        all.expect(
            topology.isolated.is_empty() && facts.nohz_full.is_empty(),
            "isolated",
            format!(
                "isolated: {}, nohz_full: {}; expected: none",
                shown(&topology.isolated),
                shown(&facts.nohz_full)
            ),
        );
    }
    match topology.smt_control.as_deref() {
        None | Some("notsupported" | "notimplemented") => {
            all.note(
                "smt",
                "this machine's cores have one thread, or the kernel does not switch them",
            );
        }
        Some(control) => all.expect(
            (control == "on") == requested.smt,
            "smt",
            format!("SMT is {control}; expected: {}", on_off(requested.smt)),
        ),
    }
}

fn frequency(all: &mut Findings, facts: &Facts, requested: &Requested) {
    match facts.frequency.boost {
        None => all.note(
            "boost",
            "unsupported here: no file of the kernel switches it",
        ),
        Some(boost) => all.expect(
            boost.is(requested.boost.on),
            "boost",
            format!("boost is {boost}; expected: {}", on_off(requested.boost.on)),
        ),
    }
    for (id, values) in [
        ("governor", &facts.frequency.governors),
        ("energy-preference", &facts.frequency.preferences),
    ] {
        let meant: Vec<(&u32, &String)> = values
            .iter()
            .filter(|(cpu, _)| match &requested.fast {
                Fast::Cpus(cpus) => cpus.contains(**cpu),
                Fast::Online => true,
            })
            .collect();
        let other: CpuSet = meant
            .iter()
            .filter(|(_, value)| *value != "performance")
            .map(|(cpu, _)| **cpu)
            .collect();
        if meant.is_empty() {
            all.note(id, "unsupported here: the CPUs to measure on have none");
        } else if other.is_empty() {
            all.ok(id, format!("performance on {} CPUs", meant.len()));
        } else {
            all.differs(id, format!("not performance on CPUs {other}"));
        }
    }
}

fn masks(all: &mut Findings, facts: &Facts, requested: &Requested) {
    let (Some(housekeeping), Ok(file)) = (&requested.housekeeping, &facts.machine) else {
        return;
    };
    let bench = &file.machine.cpus.bench;
    for (name, mask) in &facts.masks {
        all.expect(
            mask.and(bench).is_empty(),
            "mask",
            format!("{name}: {mask}; expected: within {housekeeping}"),
        );
    }
    let there: CpuSet = facts
        .interrupts
        .iter()
        .filter(|(_, target)| !target.and(bench).is_empty())
        .map(|(irq, _)| *irq)
        .collect();
    if !there.is_empty() {
        all.note(
            "interrupts",
            format!(
                "{there} are steered to CPUs to measure on, by their drivers where nobody else can; `bench run` counts \
                 those that arrive"
            ),
        );
    }
}

fn memory_and_settings(all: &mut Findings, facts: &Facts) {
    match &facts.swaps {
        None => all.note("swap", "unknown: there is no /proc/swaps"),
        Some(areas) if areas.is_empty() => all.ok("swap", "off"),
        Some(areas) => all.differs("swap", format!("on: {}", areas.join(" "))),
    }
    for (name, wanted) in SYSCTLS {
        match facts.sysctls.get(name) {
            None => all.note("sysctl", format!("{name}: unsupported here")),
            Some(value) => all.expect(
                value == wanted,
                "sysctl",
                format!("{name} is {value}; expected: {wanted}"),
            ),
        }
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn shown(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".into()
    } else {
        cpus.to_string()
    }
}
