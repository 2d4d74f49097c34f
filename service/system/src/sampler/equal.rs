//! What is read only where CPU was used leads to the same decisions as reading everything: random histories
//! of a machine are recorded as files, looked at both ways, and told to two engines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use guard_policy::action::{Action, Failure, Move};
use guard_policy::engine::Engine;
use guard_policy::event::{Event, Workload};
use guard_policy::id::{Moment, ProcId};
use guard_policy::rules::RuleSet;
use guard_policy::settings::Settings;

use super::group::Shared;
use super::{Look, Sampler};
use crate::cgroup::CgroupFs;
use crate::proc::ProcFs;
use crate::proc::stat_line as line;

const PARENT: &str = "/p.slice";
const HEAVY: &str = "/heavy.slice";
const PROGRAMS: &[&str] = &["sh", "hog", "make\0-j8", "cargo\0build", "editor"];
const MOST: usize = 14;
/// Clock ticks, of 10 ms, in a sample period.
const PERIOD: u64 = 200;

/// splitmix64: what happens depends on the seed alone.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = from.into_iter().collect();
        (!all.is_empty()).then(|| all[self.below(all.len())].clone())
    }
}

struct Running {
    ppid: u32,
    start: u64,
    group: String,
    program: &'static str,
    /// Changes with each exec.
    address: u64,
    ticks: u64,
    busy: bool,
}

/// One way of looking, and who is told.
struct Side {
    sampler: Sampler,
    engine: Engine,
    whole: bool,
}

struct Machine {
    dice: Dice,
    root: tempfile::TempDir,
    now: u64,
    next_pid: u32,
    next_address: u64,
    processes: BTreeMap<u32, Running>,
    /// CPU time of each group with all below, in microseconds. They are kept when a group is removed.
    used: BTreeMap<String, u64>,
    /// Groups that exist.
    groups: BTreeSet<String>,
    scopes: BTreeMap<String, Workload>,
    moves: Vec<Move>,
    recoveries: Vec<String>,
    sides: [Side; 2],
    read: [usize; 2],
    actions: usize,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        static RULES: LazyLock<Arc<RuleSet>> = LazyLock::new(|| Arc::new(RuleSet::shipped()));
        let root = tempfile::tempdir().unwrap();
        let setting = root.path().join("proc/sys/kernel/randomize_va_space");
        fs::create_dir_all(setting.parent().unwrap()).unwrap();
        fs::write(setting, "2\n").unwrap();
        let side = |whole| {
            let mut sampler = Sampler::new(
                CgroupFs::rooted(root.path().join("cgroup")),
                ProcFs::new(root.path().join("proc")),
            );
            // Files of removed folders can be read on here, unlike those of removed groups.
            sampler.shared = Shared::keeping(0);
            Side {
                sampler,
                engine: Engine::new(Arc::new(Settings::default()), Arc::clone(&RULES)),
                whole,
            }
        };
        let sides = [side(true), side(false)];
        let mut machine = Machine {
            dice: Dice(seed),
            root,
            now: 100_000,
            next_pid: 2,
            next_address: 4096,
            processes: BTreeMap::new(),
            used: BTreeMap::new(),
            groups: BTreeSet::new(),
            scopes: BTreeMap::new(),
            moves: Vec::new(),
            recoveries: Vec::new(),
            sides,
            read: [0; 2],
            actions: 0,
        };
        for group in ["", "/a.scope", "/a.scope/inner", "/b.scope", "/c.service"] {
            machine.make_group(&format!("{PARENT}{group}"));
        }
        machine.make_group(HEAVY);
        machine
    }

    fn folder(&self, group: &str) -> PathBuf {
        self.root.path().join("cgroup").join(&group[1..])
    }

    fn make_group(&mut self, group: &str) {
        fs::create_dir_all(self.folder(group)).unwrap();
        self.groups.insert(group.to_owned());
        // A group that is made anew has used nothing.
        self.used.insert(group.to_owned(), 0);
        self.write_used(group);
        self.write_members(group);
    }

    fn write_used(&self, group: &str) {
        if self.groups.contains(group) {
            let text = format!("usage_usec {}\n", self.used[group]);
            fs::write(self.folder(group).join("cpu.stat"), text).unwrap();
        }
    }

    fn write_members(&self, group: &str) {
        let inside = self
            .processes
            .iter()
            .filter(|(_, process)| process.group == group);
        let text: String = inside.map(|(pid, _)| format!("{pid}\n")).collect();
        fs::write(self.folder(group).join("cgroup.procs"), text).unwrap();
    }

    /// CPU time of a group and of all above it.
    fn uses(&mut self, group: &str, usec: u64) {
        let mut at = group.to_owned();
        while !at.is_empty() {
            *self.used.entry(at.clone()).or_default() += usec;
            self.write_used(&at);
            at.truncate(at.rfind('/').unwrap_or(0));
        }
    }

    fn write_process(&self, pid: u32) {
        let process = &self.processes[&pid];
        let folder = self.root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let comm = process.program.split('\0').next().unwrap();
        let stat = line(
            pid,
            comm,
            process.ppid,
            (process.ticks, 0),
            process.start,
            process.address,
        );
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), format!("{}\0", process.program)).unwrap();
        fs::write(folder.join("cgroup"), format!("0::{}\n", process.group)).unwrap();
    }

    fn watched_groups(&self) -> Vec<String> {
        let below = |group: &&String| group.starts_with(PARENT);
        self.groups.iter().filter(below).cloned().collect()
    }

    fn any_process(&mut self) -> Option<u32> {
        self.dice.pick(self.processes.keys().copied())
    }

    fn spawn(&mut self) {
        if self.processes.len() >= MOST {
            return;
        }
        self.next_pid = 2 + (self.next_pid - 1) % 25;
        let pid = self.next_pid;
        if self.processes.contains_key(&pid) {
            return;
        }
        let parent = if self.dice.one_in(3) {
            None
        } else {
            self.any_process()
        };
        let group = match parent {
            Some(parent) => self.processes[&parent].group.clone(),
            None => self.dice.pick(self.watched_groups()).unwrap(),
        };
        self.next_address += 4096;
        let process = Running {
            ppid: parent.unwrap_or(1),
            start: self.now,
            group: group.clone(),
            program: PROGRAMS[self.dice.below(PROGRAMS.len())],
            address: self.next_address,
            ticks: 0,
            busy: self.dice.one_in(4),
        };
        self.processes.insert(pid, process);
        self.write_process(pid);
        self.write_members(&group);
        self.uses(&group, 40);
    }

    fn exec(&mut self) {
        let Some(pid) = self.any_process() else {
            return;
        };
        self.next_address += 4096;
        let (address, program) = (self.next_address, PROGRAMS[self.dice.below(PROGRAMS.len())]);
        let process = self.processes.get_mut(&pid).unwrap();
        (process.address, process.program) = (address, program);
        let group = process.group.clone();
        self.write_process(pid);
        self.uses(&group, 40);
    }

    fn exit(&mut self) {
        let Some(pid) = self.any_process() else {
            return;
        };
        let group = self.processes.remove(&pid).unwrap().group;
        fs::remove_dir_all(self.root.path().join(format!("proc/{pid}"))).unwrap();
        let orphans: Vec<u32> = self
            .processes
            .iter()
            .filter(|(_, process)| process.ppid == pid)
            .map(|(pid, _)| *pid)
            .collect();
        for orphan in orphans {
            self.processes.get_mut(&orphan).unwrap().ppid = 1;
            self.write_process(orphan);
        }
        self.write_members(&group);
        self.uses(&group, 40);
        self.remove_empty_scope(&group);
    }

    /// systemd removes a scope of ours with its last process.
    fn remove_empty_scope(&mut self, group: &str) {
        let unit = group.rsplit('/').next().unwrap().to_owned();
        if self.scopes.contains_key(&unit) && !self.processes.values().any(|p| p.group == group) {
            self.scopes.remove(&unit);
            fs::remove_dir_all(self.folder(group)).unwrap();
            self.groups.remove(group);
            self.tell(&Event::Gone { unit });
        }
    }

    fn enter(&mut self, pid: u32, group: &str) {
        let process = self.processes.get_mut(&pid).unwrap();
        let from = std::mem::replace(&mut process.group, group.to_owned());
        self.write_process(pid);
        self.write_members(&from);
        self.write_members(group);
        self.remove_empty_scope(&from);
    }

    /// A process has itself moved by somebody else, as systemd-run does: it ran in both groups.
    fn migrate(&mut self) {
        let Some(pid) = self.any_process() else {
            return;
        };
        let group = self.processes[&pid].group.clone();
        let unit = group.rsplit('/').next().unwrap();
        if self.scopes.contains_key(unit) {
            return;
        }
        let to = self.dice.pick(self.watched_groups()).unwrap();
        self.uses(&group, 40);
        self.enter(pid, &to);
        self.uses(&to, 40);
    }

    /// A group comes, or an empty one goes.
    fn remake_groups(&mut self) {
        let group = format!("{PARENT}/d{}.scope", self.dice.below(3));
        if !self.groups.contains(&group) {
            self.make_group(&group);
        } else if !self
            .processes
            .values()
            .any(|process| process.group == group)
        {
            fs::remove_dir_all(self.folder(&group)).unwrap();
            self.groups.remove(&group);
        }
    }

    fn burn(&mut self, ticks: u64) {
        let busy = self.processes.iter().filter(|(_, process)| process.busy);
        for pid in busy.map(|(pid, _)| *pid).collect::<Vec<_>>() {
            let process = self.processes.get_mut(&pid).unwrap();
            process.ticks += ticks;
            let group = process.group.clone();
            self.write_process(pid);
            self.uses(&group, ticks * 10_000);
        }
    }

    fn tell(&mut self, event: &Event) {
        let now = Moment(Duration::from_millis(self.now * 10));
        let [exhaustive, pruned] = &mut self.sides;
        let wanted = exhaustive.engine.step(event.clone(), now);
        assert_eq!(pruned.engine.step(event.clone(), now), wanted, "{event:?}");
        self.ordered(wanted);
    }

    fn sample(&mut self) {
        let now = Moment(Duration::from_millis(self.now * 10));
        let scopes: Vec<(String, String)> = self
            .scopes
            .keys()
            .map(|unit| (unit.clone(), format!("{HEAVY}/{unit}")))
            .collect();
        let parents = [PARENT.to_owned()];
        let mut looks: Vec<Look> = Vec::new();
        for (side, read) in self.sides.iter_mut().zip(&mut self.read) {
            if side.whole {
                side.sampler.expect_moved();
            }
            let look = side.sampler.sample(&parents, &scopes);
            *read += look.sample.processes.len();
            looks.push(look);
        }
        assert_eq!(looks[0].watched, looks[1].watched);
        assert_eq!(looks[0].scope_pids, looks[1].scope_pids);
        let mut actions = looks
            .into_iter()
            .zip(&mut self.sides)
            .map(|(look, side)| side.engine.step(Event::Sample(look.sample), now));
        let (wanted, pruned) = (actions.next().unwrap(), actions.next().unwrap());
        drop(actions);
        assert_eq!(pruned, wanted);
        for (pid, process) in self
            .processes
            .iter()
            .filter(|(_, p)| p.group.starts_with(PARENT))
        {
            let id = ProcId {
                pid: *pid,
                start: process.start,
            };
            let known = |side: &Side| {
                let seen = side.engine.process(id).expect("a watched process");
                (
                    seen.cpu,
                    seen.hot_samples,
                    seen.known.is_some(),
                    seen.refused,
                )
            };
            assert_eq!(known(&self.sides[1]), known(&self.sides[0]), "{id:?}");
        }
        self.ordered(wanted);
    }

    fn ordered(&mut self, actions: Vec<Action>) {
        self.actions += actions.len();
        for action in actions {
            match action {
                Action::Move(order) => self.moves.push(order),
                Action::Recover { unit, .. } => self.recoveries.push(unit),
                Action::Refuse { .. } | Action::Held { .. } | Action::Unheld { .. } => {
                    panic!("nobody asked")
                }
            }
        }
    }

    fn finish(&mut self) {
        if let Some(order) = self.moves.pop() {
            let root = order.root();
            let alive = self
                .processes
                .get(&root.pid)
                .is_some_and(|p| p.start == root.start);
            let outcome = if !alive {
                Err(Failure::NoSuchProcess("it ended".to_owned()))
            } else if self.dice.one_in(5) {
                Err(Failure::Timeout("late".to_owned()))
            } else {
                Ok(self.carry_out(&order))
            };
            self.moved(&Event::Moved { root, outcome });
        } else if let Some(unit) = self.recoveries.pop() {
            let group = format!("{HEAVY}/{unit}");
            let inside = self
                .processes
                .iter()
                .filter(|(_, process)| process.group == group);
            let ids: Vec<ProcId> = inside
                .map(|(&pid, process)| ProcId {
                    pid,
                    start: process.start,
                })
                .collect();
            for id in &ids {
                self.enter(id.pid, &format!("{PARENT}/a.scope"));
            }
            let outcome = match self.scopes.remove(&unit) {
                None => Err(Failure::NoSuchWorkload("it ended".to_owned())),
                Some(_) => Ok(ids),
            };
            if outcome.is_ok() {
                fs::remove_dir_all(self.folder(&group)).unwrap();
                self.groups.remove(&group);
            }
            self.moved(&Event::Recovered { unit, outcome });
        }
    }

    fn moved(&mut self, event: &Event) {
        for side in &mut self.sides {
            side.sampler.expect_moved();
        }
        self.tell(event);
    }

    fn carry_out(&mut self, order: &Move) -> Workload {
        let root = order.root();
        let workload = Workload {
            unit: format!("lwg-{}-{}.scope", root.pid, self.now),
            class: order.class.clone(),
            root,
            placement: order.placement,
        };
        let group = format!("{HEAVY}/{}", workload.unit);
        self.make_group(&group);
        self.scopes.insert(workload.unit.clone(), workload.clone());
        let source = self.processes[&root.pid].group.clone();
        let mut tree = vec![root.pid];
        let mut at = 0;
        while let Some(parent) = tree.get(at).copied() {
            let children = self.processes.iter().filter(|(pid, process)| {
                process.ppid == parent && process.group == source && !tree.contains(pid)
            });
            let more: Vec<u32> = children.map(|(pid, _)| *pid).collect();
            tree.extend(more);
            at += 1;
        }
        for pid in tree {
            self.enter(pid, &group);
        }
        workload
    }

    fn operation(&mut self) {
        self.now += 1;
        match self.dice.below(16) {
            0 | 1 => self.spawn(),
            2 => self.exec(),
            3 => self.exit(),
            4 => self.migrate(),
            5 => self.remake_groups(),
            6 | 7 => self.finish(),
            8 => {
                if let Some(pid) = self.any_process() {
                    let process = self.processes.get_mut(&pid).unwrap();
                    process.busy = !process.busy;
                }
            }
            9 if self.dice.one_in(4) => {
                // Early, late, or after a sleep.
                let ticks = [1, 20, PERIOD * 2, 100_000][self.dice.below(4)];
                self.now += ticks;
                self.burn(ticks);
                self.sample();
            }
            _ => {
                self.now += PERIOD;
                self.burn(PERIOD);
                self.sample();
            }
        }
    }
}

#[test]
fn hundreds_of_random_histories_lead_to_the_same_actions() {
    let (mut read, mut actions) = ([0, 0], 0);
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        for _ in 0..50 {
            machine.operation();
        }
        actions += machine.actions;
        for (sum, read_here) in read.iter_mut().zip(machine.read) {
            *sum += read_here;
        }
    }
    // Otherwise it says nothing.
    assert!(actions > 200, "{actions}");
    assert!(read[1] * 5 < read[0] * 4, "{read:?}");
}
