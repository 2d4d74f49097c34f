//! CPU that the guard does not manage: out of its reach, with what would bring it inside, or in reach and not
//! watched. Who used CPU is told, not what that caused.

use std::collections::BTreeMap;

use super::{Finding, Hour, Severity, Situation};
use crate::snapshot::Consumer;

/// Less than this on average is not worth a line, in percent of one logical CPU.
const LEAST: f64 = 10.0;

/// Whose CPU it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A unit of the system manager.
    SystemUnit(String),
    /// Containers of a root daemon.
    Containers(String),
    /// Another user.
    OtherUser(u32),
    /// A login session of the same user.
    Session(String),
    /// Below the same user's manager, in no class.
    Own(String),
    /// Kernel threads, and whatever is in no group.
    Root,
}

/// The findings.
pub(super) fn findings(situation: &Situation, hour: &Hour<'_>) -> Vec<Finding> {
    let naming = hour
        .snapshots
        .iter()
        .filter(|(_, snapshot)| !snapshot.top_cpu.is_empty())
        .count()
        .max(1);
    let mut places: BTreeMap<Place, Used> = BTreeMap::new();
    for (_, snapshot) in &hour.snapshots {
        for consumer in snapshot
            .top_cpu
            .iter()
            .filter(|consumer| consumer.class == "unmanaged")
        {
            let used = places
                .entry(place(&consumer.cgroup, situation.environment.uid))
                .or_default();
            used.cpu_pct += consumer.cpu_pct / naming as f64;
            used.keep(consumer);
        }
    }
    let mut rows: Vec<(Place, Used)> = places
        .into_iter()
        .filter(|(_, used)| used.cpu_pct >= LEAST)
        .collect();
    rows.sort_by(|a, b| b.1.cpu_pct.total_cmp(&a.1.cpu_pct));
    let (own, outside): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|(place, _)| matches!(place, Place::Own(_)));
    let evidence = |rows: &[(Place, Used)]| -> Vec<String> {
        rows.iter().map(|(place, used)| used.words(place)).collect()
    };
    let mut findings = Vec::new();
    if !outside.is_empty() {
        let ways: Vec<String> = outside.iter().map(|(place, _)| way_in(place)).collect();
        findings.push(Finding {
            id: "outside-reach",
            severity: Severity::Note,
            title: "CPU went to work that the guard cannot move".to_owned(),
            evidence: evidence(&outside),
            next: ways.join("; "),
        });
    }
    if !own.is_empty() {
        let watched = |unit: &str| {
            situation
                .guard
                .watched
                .iter()
                .any(|(watched, _)| watched == unit)
        };
        let next = if own
            .iter()
            .all(|(place, _)| matches!(place, Place::Own(unit) if watched(unit)))
        {
            "it is watched and was not routed: `workload-guard explain PID` tells why"
        } else {
            "it can be watched: `workload-guard watch app.slice`; or start such work with `workload-guard run`"
        };
        findings.push(Finding {
            id: "own-unmanaged",
            severity: Severity::Note,
            title: "CPU went to your own work in no class".to_owned(),
            evidence: evidence(&own),
            next: next.to_owned(),
        });
    }
    findings
}

/// What was used in one place.
#[derive(Clone, Debug, Default)]
struct Used {
    cpu_pct: f64,
    /// The greatest consumer.
    most: Option<(f64, String)>,
}

impl Used {
    fn keep(&mut self, consumer: &Consumer) {
        if self
            .most
            .as_ref()
            .is_none_or(|(most, _)| *most < consumer.cpu_pct)
        {
            let command = format!("process {} ({})", consumer.pid, consumer.command);
            self.most = Some((consumer.cpu_pct, command));
        }
    }

    fn words(&self, place: &Place) -> String {
        let most = self
            .most
            .as_ref()
            .map_or(String::new(), |(_, command)| format!(", most by {command}"));
        format!(
            "{}: {:.0}% of one CPU on average{most}",
            name(place),
            self.cpu_pct
        )
    }
}

fn place(cgroup: &str, uid: u32) -> Place {
    let parts: Vec<&str> = cgroup.split('/').filter(|part| !part.is_empty()).collect();
    let containers = |part: &&str| {
        part.starts_with("docker-")
            || part.starts_with("libpod-")
            || part.starts_with("cri-containerd-")
    };
    match parts.as_slice() {
        [] | ["init.scope", ..] => Place::Root,
        [
            "docker" | "kubepods" | "kubepods.slice" | "machine.slice" | "lxc" | "lxc.payload",
            ..,
        ] => Place::Containers(parts[0].to_owned()),
        ["system.slice", rest @ ..] if rest.iter().any(containers) => {
            Place::Containers("docker".to_owned())
        }
        ["system.slice", rest @ ..] => Place::SystemUnit(
            rest.iter()
                .find(|part| is_unit(part))
                .unwrap_or(&"system.slice")
                .to_string(),
        ),
        ["user.slice", user, rest @ ..] => {
            let owner = user
                .strip_prefix("user-")
                .and_then(|name| name.strip_suffix(".slice"));
            match owner.and_then(|owner| owner.parse().ok()) {
                Some(owner) if owner != uid => Place::OtherUser(owner),
                _ => match rest {
                    [manager, first, ..] if manager.starts_with("user@") => {
                        Place::Own((*first).to_owned())
                    }
                    [manager] if manager.starts_with("user@") => Place::Own((*manager).to_owned()),
                    [session, ..] => Place::Session((*session).to_owned()),
                    [] => Place::Session((*user).to_owned()),
                },
            }
        }
        [other, ..] => Place::SystemUnit((*other).to_owned()),
    }
}

fn is_unit(part: &str) -> bool {
    part.ends_with(".service") || part.ends_with(".scope")
}

fn name(place: &Place) -> String {
    match place {
        Place::SystemUnit(unit) => format!("{unit} of the system"),
        Place::Containers(of) => format!("containers of a root daemon ({of})"),
        Place::OtherUser(uid) => format!("user {uid}"),
        Place::Session(unit) => format!("your login session {unit}"),
        Place::Own(unit) => unit.clone(),
        Place::Root => "kernel threads and what is in no group".to_owned(),
    }
}

fn way_in(place: &Place) -> String {
    match place {
        Place::SystemUnit(unit) if unit.starts_with("nix-daemon") => {
            "nix builds run as root's daemon: bound them with max-jobs and cores in nix.conf, or \
             `systemctl set-property nix-daemon.service CPUQuota=` as root"
                .to_owned()
        }
        Place::SystemUnit(unit) if unit.starts_with("docker") || unit.starts_with("containerd") => {
            containers().to_owned()
        }
        Place::SystemUnit(unit) if unit.starts_with("packagekit") => {
            "updates run in packagekit.service: `systemctl set-property packagekit.service CPUWeight=idle` as root"
                .to_owned()
        }
        Place::SystemUnit(unit) => format!("as root: `systemctl set-property {unit} CPUQuota=` or CPUWeight="),
        Place::Containers(_) => containers().to_owned(),
        Place::OtherUser(uid) => format!(
            "user {uid} can run a guard of their own; as root: `systemctl set-property user-{uid}.slice CPUQuota=`"
        ),
        Place::Session(unit) => format!(
            "what is in {unit} could not be put back: start it with `workload-guard run`, or from an app of the desktop"
        ),
        Place::Own(_) => String::new(),
        Place::Root => "the kernel's own work: `workload-guard profile` while it happens".to_owned(),
    }
}

fn containers() -> &'static str {
    "containers of a root daemon: `docker run --cpus=`, or run them rootless (podman), which puts them below \
     your own manager"
}
