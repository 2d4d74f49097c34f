//! A look of some seconds at all control groups, and at how late a timer is meanwhile. It blocks: a thread of its
//! own is the place for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cgroup::CgroupFs;

/// Control groups that are looked at; a machine with more is looked at in part.
const MAX_GROUPS: usize = 20_000;

/// A control group's counters, by name: those of `cpu.stat`.
pub type Stat = BTreeMap<String, u64>;

/// What was read at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// By path.
    pub groups: BTreeMap<String, Stat>,
    /// Microseconds in which some task waited for a CPU, so far (`total` of `some`).
    pub psi_usec: Option<u64>,
    /// Nanoseconds that this thread waited on a run queue, so far.
    pub waited_nsec: Option<u64>,
}

/// Reads everything once.
pub fn read(proc: &Path, cgroups: &CgroupFs) -> Reading {
    let mut groups = BTreeMap::new();
    let mut next = vec![String::new()];
    while let Some(group) = next.pop() {
        if groups.len() >= MAX_GROUPS {
            break;
        }
        let path = if group.is_empty() { "/" } else { &group };
        let children = cgroups.children(path).unwrap_or_default();
        next.extend(children.into_iter().map(|child| format!("{group}/{child}")));
        if let Some(stat) = cgroups.cpu_stat(path) {
            groups.insert(path.to_owned(), stat);
        }
    }
    let text = |file: &str| std::fs::read_to_string(proc.join(file)).ok();
    Reading {
        groups,
        psi_usec: text("pressure/cpu").and_then(|text| some_total(&text)),
        waited_nsec: text("thread-self/schedstat")
            .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok()),
    }
}

/// Sleeps `samples` times within `duration`, and answers by how many milliseconds each was too long. `progress`
/// hears how much is done, from 0 to 1.
pub fn wakeups(duration: Duration, samples: u32, mut progress: impl FnMut(f64)) -> Vec<f64> {
    let each = duration / samples.max(1);
    let mut late = Vec::with_capacity(samples as usize);
    let begin = Instant::now();
    let mut told = 0;
    while late.len() < samples as usize && begin.elapsed() < duration {
        let before = Instant::now();
        sleep(each);
        late.push(before.elapsed().saturating_sub(each).as_secs_f64() * 1000.0);
        let part = begin.elapsed().as_secs_f64() / duration.as_secs_f64();
        if (part * 20.0) as u32 > told {
            told = (part * 20.0) as u32;
            progress(part.min(1.0));
        }
    }
    sleep(duration.saturating_sub(begin.elapsed()));
    late
}

fn some_total(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace()
        .find_map(|field| field.strip_prefix("total="))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_group_is_read_with_its_counters() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("cgroup/cpu.stat", "usage_usec 9\n");
        write("cgroup/a.slice/cpu.stat", "usage_usec 7\nnr_throttled 2\n");
        write("cgroup/a.slice/b.scope/cpu.stat", "usage_usec 3\n");
        write(
            "proc/pressure/cpu",
            "some avg10=1.00 avg60=0.00 avg300=0.00 total=1234\nfull total=5\n",
        );
        write("proc/thread-self/schedstat", "10 20 30\n");
        let reading = read(
            &folder.path().join("proc"),
            &CgroupFs::rooted(folder.path().join("cgroup")),
        );
        let groups: Vec<&str> = reading.groups.keys().map(String::as_str).collect();
        assert_eq!(groups, ["/", "/a.slice", "/a.slice/b.scope"]);
        assert_eq!(reading.groups["/a.slice"]["nr_throttled"], 2);
        assert_eq!(
            (reading.psi_usec, reading.waited_nsec),
            (Some(1234), Some(20))
        );
    }

    #[test]
    fn each_wakeup_is_timed_and_the_end_is_kept() {
        let mut parts = Vec::new();
        let begin = Instant::now();
        let late = wakeups(Duration::from_millis(100), 20, |part| parts.push(part));
        assert!(begin.elapsed() >= Duration::from_millis(100));
        assert!(!late.is_empty() && late.len() <= 20 && late.iter().all(|late| *late >= 0.0));
        assert!(parts.is_sorted() && parts.last() <= Some(&1.0));
    }
}
