//! Which units run, by their control groups: no bus is needed, and none may be there.

use crate::root::Root;

/// Those of `names` whose control group holds a process. A timer has none and is not seen.
pub fn running(root: &Root, names: &[&str]) -> Vec<String> {
    let mut running: Vec<String> = names
        .iter()
        .filter(|name| {
            let file = format!("sys/fs/cgroup/system.slice/{name}/cgroup.procs");
            root.read(&file)
                .ok()
                .flatten()
                .is_some_and(|pids| !pids.trim().is_empty())
        })
        .map(|name| (*name).to_owned())
        .collect();
    running.sort();
    running.dedup();
    running
}
