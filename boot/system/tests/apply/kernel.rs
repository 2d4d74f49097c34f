//! A kernel that is a tree: it takes writes as the real one does, with what they change in passing and what they refuse,
//! notes each in order, and can die between two of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use bench_profile::cpus::CpuSet;
use bench_system::hands::Hands;
use bench_system::originals;
use bench_system::root::Root;
use nix::errno::Errno;

const CPU: &str = "sys/devices/system/cpu";
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
/// The interrupt that its driver steers, where there is a tree of a desktop.
pub const MANAGED: &str = "proc/irq/30/smp_affinity";

/// What a killed process leaves in [`Kernel::until_killed`].
struct Killed;

pub struct Kernel {
    folder: tempfile::TempDir,
    /// What was done, in order.
    pub done: Vec<String>,
    /// Units and whether they run.
    pub units: BTreeMap<String, bool>,
    /// The process dies before it does the next thing when it has done so many.
    pub killed_after: Option<usize>,
    /// Swap areas that cannot go off.
    pub stuck: BTreeSet<String>,
    /// Whether [`MANAGED`] is.
    managed: bool,
    /// Swap areas that are off, with their lines of `/proc/swaps`.
    off: BTreeMap<String, String>,
}

impl Kernel {
    /// A machine with irqbalance, as the tree has it.
    pub fn of(tree: &str) -> Kernel {
        // In memory where there is some: hundreds of machines of hundreds of files.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder");
        bench_trees::expand(tree, folder.path()).expect("a tree");
        Kernel {
            folder,
            done: Vec::new(),
            units: BTreeMap::from([("irqbalance.service".to_owned(), true)]),
            killed_after: None,
            stuck: BTreeSet::new(),
            managed: tree.contains("a managed one"),
            off: BTreeMap::new(),
        }
    }

    pub fn root(&self) -> Root {
        Root::new(self.folder.path())
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `work` as a process that is killed after `things`; whether it lived to its end.
    pub fn until_killed(&mut self, things: usize, work: impl FnOnce(&mut Kernel)) -> bool {
        self.done.clear();
        self.killed_after = Some(things);
        let ended = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.killed_after = None;
        match ended {
            Ok(()) => true,
            Err(why) if why.is::<Killed>() => false,
            Err(why) => resume_unwind(why),
        }
    }

    /// Each file's bytes by path, but for those of the product itself.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(self.folder(), self.folder(), &mut files);
        files
    }

    pub fn text(&self, path: &str) -> String {
        let path = self.folder().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// As another than the product would.
    pub fn set(&self, path: &str, value: &str) {
        std::fs::write(self.folder().join(path), format!("{value}\n")).expect(path);
    }

    fn word(&self, path: &str) -> Option<String> {
        let text = self.root().read(path).expect(path)?;
        Some(text.trim().to_owned())
    }

    fn doing(&mut self, what: String) {
        if self.killed_after == Some(self.done.len()) {
            // No message: it is no failure of the test.
            resume_unwind(Box::new(Killed));
        }
        self.done.push(what);
    }

    fn policies(&self) -> Vec<String> {
        let names = self.root().names(POLICIES).expect("a folder");
        names
            .into_iter()
            .filter(|name| name.starts_with("policy"))
            .collect()
    }

    fn online(&self) -> CpuSet {
        let online = self.word(&format!("{CPU}/online")).expect("a list");
        online.parse().expect("a list")
    }

    /// CPUs come and go; the policies of those that are away show nothing, and a driver forgets its preference.
    fn switch(&self, cpus: &CpuSet, on: bool) {
        let online = match on {
            true => self.online().or(cpus),
            false => self.online().without(cpus),
        };
        self.set(&format!("{CPU}/online"), &online.to_string());
        for cpu in cpus.iter() {
            self.set(
                &format!("{CPU}/cpu{cpu}/online"),
                if on { "1" } else { "0" },
            );
        }
        for name in self.root().names(POLICIES).expect("a folder") {
            let Some(number) = name.trim_start_matches('.').strip_prefix("policy") else {
                continue;
            };
            let shown = format!("{POLICIES}/policy{number}");
            let hidden = format!("{POLICIES}/.policy{number}");
            let related = self.word(&format!("{POLICIES}/{name}/related_cpus"));
            let related: CpuSet = related
                .expect("a list")
                .replace(' ', ",")
                .parse()
                .expect("a list");
            let active = !related.and(&online).is_empty();
            let moved = |from: &str, to: &str| {
                std::fs::rename(self.folder().join(from), self.folder().join(to)).expect(to);
            };
            match (active, name.starts_with('.')) {
                (false, false) => moved(&shown, &hidden),
                (true, true) => {
                    moved(&hidden, &shown);
                    let preference = format!("{shown}/energy_performance_preference");
                    if self.word(&preference).is_some() {
                        self.set(&preference, "balance_power");
                    }
                }
                _ => {}
            }
        }
        // An interrupt that has no CPU left goes to all.
        let names = self.root().names("proc/irq").expect("a folder");
        for irq in names.into_iter().filter(|name| name.parse::<u32>().is_ok()) {
            let path = format!("proc/irq/{irq}/smp_affinity");
            if let Some(mask) = self.word(&path) {
                let mask = CpuSet::from_mask(&mask).expect("a mask");
                if mask.and(&online).is_empty() {
                    self.set(&path, &self.mask(&online));
                }
            }
        }
    }

    /// As wide as the machine's CPUs.
    fn mask(&self, cpus: &CpuSet) -> String {
        let present: CpuSet = self
            .word(&format!("{CPU}/present"))
            .expect("a list")
            .parse()
            .expect("a list");
        format!("{:0>1$}", cpus.to_mask(), present.len().div_ceil(4))
    }

    fn take(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        if path == MANAGED && self.managed {
            return Err(Errno::EIO);
        }
        let global = format!("{POLICIES}/boost");
        if path.starts_with("proc/irq/") || path.starts_with("sys/devices/virtual/workqueue/") {
            let cpus = CpuSet::from_mask(value).map_err(|_| Errno::EINVAL)?;
            self.set(path, &self.mask(&cpus));
        } else if path.ends_with("_cpumask") {
            let cpus: CpuSet = value.parse().map_err(|_| Errno::EINVAL)?;
            self.set(path, &cpus.to_string());
        } else if path == format!("{CPU}/smt/control") {
            let present: CpuSet = self
                .word(&format!("{CPU}/present"))
                .expect("a list")
                .parse()
                .expect("a list");
            // Each that is there, also one that somebody had taken offline.
            let cpus = match value {
                "on" => present.without(&self.online()),
                _ => self.online().and(&(4..8).collect()),
            };
            self.set(path, value);
            self.switch(&cpus, value == "on");
        } else if let Some(cpu) = path
            .strip_prefix(&format!("{CPU}/cpu"))
            .and_then(|rest| rest.strip_suffix("/online")?.parse::<u32>().ok())
        {
            self.switch(&CpuSet::from(cpu), value == "1");
        } else if path == global {
            self.set(path, value);
            for policy in self.policies() {
                let own = format!("{POLICIES}/{policy}/boost");
                if self.word(&own).is_some() {
                    self.set(&own, value);
                }
            }
        } else if path.starts_with(POLICIES) && path.ends_with("/boost") {
            if self.word(&global).as_deref() == Some("0") {
                return Err(Errno::EINVAL);
            }
            self.set(path, value);
        } else if let Some(policy) = path.strip_suffix("/scaling_governor") {
            self.set(path, value);
            let preference = format!("{policy}/energy_performance_preference");
            if value == "performance" && self.word(&preference).is_some() {
                self.set(&preference, value);
            }
            // intel_pstate reads the switch anew, from where nobody has set it.
            let no_turbo = format!("{CPU}/intel_pstate/no_turbo");
            if self.word(&no_turbo).is_some() {
                self.set(&no_turbo, "0");
            }
        } else if let Some(policy) = path.strip_suffix("/energy_performance_preference") {
            let governor = self.word(&format!("{policy}/scaling_governor"));
            if governor.as_deref() == Some("performance") && value != "performance" {
                return Err(Errno::EBUSY);
            }
            self.set(path, value);
        } else {
            self.set(path, value);
        }
        Ok(())
    }
}

impl Hands for Kernel {
    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        self.doing(format!("{path} = {}", value.trim()));
        let saved = originals::load(&self.root()).expect("they are readable");
        let saved = saved.expect("they are saved before the first write");
        assert!(
            saved.before(path).is_some(),
            "{path} is written, and was not saved"
        );
        assert!(
            self.word(path).is_some(),
            "{path} is written, and is not there"
        );
        Ok(self.take(path, value.trim())?)
    }

    fn swap_off(&mut self, device: &str) -> io::Result<()> {
        self.doing(format!("swapoff {device}"));
        if self.stuck.contains(device) {
            return Err(Errno::ENOMEM.into());
        }
        let swaps = self.text("proc/swaps");
        let is_it = |line: &&str| line.split_whitespace().next() == Some(device);
        let line = swaps.lines().find(is_it).ok_or(Errno::EINVAL)?.to_owned();
        let left: Vec<&str> = swaps.lines().filter(|line| !is_it(line)).collect();
        self.set("proc/swaps", &left.join("\n"));
        self.off.insert(device.to_owned(), line);
        Ok(())
    }

    fn swap_on(&mut self, device: &str, priority: i32) -> io::Result<()> {
        self.doing(format!("swapon {device} priority {priority}"));
        let line = self.off.remove(device).ok_or(Errno::EBUSY)?;
        let swaps = self.text("proc/swaps");
        self.set("proc/swaps", &format!("{swaps}{line}"));
        Ok(())
    }

    fn unit_is_active(&mut self, unit: &str) -> Result<bool, String> {
        Ok(self.units.get(unit).copied().unwrap_or(false))
    }

    fn stop_unit(&mut self, unit: &str) -> Result<(), String> {
        self.doing(format!("stop {unit}"));
        self.units.insert(unit.to_owned(), false);
        Ok(())
    }

    /// irqbalance sets to work at once.
    fn start_unit(&mut self, unit: &str) -> Result<(), String> {
        self.doing(format!("start {unit}"));
        self.units.insert(unit.to_owned(), true);
        Ok(())
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let below = path
            .strip_prefix(root)
            .expect("below")
            .display()
            .to_string();
        if path.is_symlink() {
            // What it leads to is here under its own name.
            continue;
        }
        if path.is_dir() {
            if below != "run" {
                collect(root, &path, files);
            }
        } else {
            files.insert(below, std::fs::read_to_string(&path).expect("a text"));
        }
    }
}
