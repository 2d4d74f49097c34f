//! What a process that executes another program is, read from `/proc`.

use std::sync::Arc;

use guard_policy::event::{Exec, Process};
use guard_policy::id::ProcId;

use crate::proc::ProcFs;

/// As much of the arguments as the sampler keeps: else one program would look like two.
const MAX_ARGV_BYTES: usize = 4096;
const MAX_ARGUMENTS: usize = 128;
/// The longest line of ancestors that is followed.
const MAX_ANCESTORS: usize = 64;

/// The process, if it is in one of the control groups `watched` or below. One small read settles it for
/// those that are not; one that is gone is none.
pub fn watched_process(proc: &ProcFs, pid: u32, watched: &[String]) -> Option<Process> {
    let cgroup = proc.cgroup(pid)?;
    if !is_below(&cgroup, watched) {
        return None;
    }
    read(proc, pid, cgroup.into())
}

/// The process with its ancestors.
pub fn with_ancestors(proc: &ProcFs, process: Process, watched: &[String]) -> Exec {
    let mut exec = Exec {
        line: Vec::new(),
        elsewhere: Vec::new(),
    };
    let mut next = process.ppid;
    exec.line.push(process);
    // Neither the first process nor anything above it is of interest.
    for _ in 0..MAX_ANCESTORS {
        if next <= 1 {
            break;
        }
        let Some(cgroup) = proc.cgroup(next) else {
            break;
        };
        if is_below(&cgroup, watched) {
            let Some(parent) = read(proc, next, cgroup.into()) else {
                break;
            };
            next = parent.ppid;
            exec.line.push(parent);
        } else {
            let Ok(Some(stat)) = proc.stat(next) else {
                break;
            };
            exec.elsewhere.push(ProcId {
                pid: next,
                start: stat.start,
            });
            next = stat.ppid;
        }
    }
    exec
}

fn read(proc: &ProcFs, pid: u32, cgroup: Arc<str>) -> Option<Process> {
    let stat = proc.stat(pid).ok()?.filter(|stat| !stat.is_dead())?;
    let id = ProcId {
        pid,
        start: stat.start,
    };
    let mut argv = proc.argv_bounded(pid, MAX_ARGV_BYTES).ok()??;
    argv.truncate(MAX_ARGUMENTS);
    Some(Process {
        id,
        ppid: stat.ppid,
        cgroup,
        cpu_usec: stat.cpu_usec(),
        reaped_usec: stat.reaped_usec(),
        leads_session: stat.session == pid,
        has_terminal: stat.tty_nr != 0,
        argv: argv.into(),
    })
}

/// Whether a control group is one of `parents` or below one.
fn is_below(cgroup: &str, parents: &[String]) -> bool {
    parents.iter().any(|parent| {
        cgroup
            .strip_prefix(parent.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::proc::stat_line;

    const WATCHED: &str = "/user.slice/protected.slice/protected-workload.slice";

    fn record(root: &Path, pid: u32, ppid: u32, cgroup: &str, argv: &str) {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let line = stat_line(pid, "x", ppid, (3, 4), 100 + u64::from(pid), 4096);
        fs::write(folder.join("stat"), line).unwrap();
        fs::write(folder.join("cgroup"), format!("1:cpu:/x\n0::{cgroup}\n")).unwrap();
        fs::write(folder.join("cmdline"), argv.replace(' ', "\0")).unwrap();
    }

    #[test]
    fn only_what_is_in_a_watched_group_is_read() {
        let root = tempfile::tempdir().unwrap();
        let proc = ProcFs::new(root.path());
        let watched = [WATCHED.to_owned()];
        let look = |pid| watched_process(&proc, pid, &watched);
        record(root.path(), 7, 1, &format!("{WATCHED}/a.scope"), "make -j8");
        record(root.path(), 8, 1, &format!("{WATCHED}-not/a.scope"), "make");
        record(root.path(), 9, 1, WATCHED, "make");
        let found = look(7).unwrap();
        assert_eq!(found.id, ProcId { pid: 7, start: 107 });
        assert_eq!(*found.argv, ["make".into(), "-j8".into()]);
        assert!(look(8).is_none() && look(10).is_none());
        assert!(look(9).is_some());
        assert!(watched_process(&proc, 7, &[]).is_none());
    }

    #[test]
    fn ancestors_are_told_by_whether_they_are_watched() {
        let root = tempfile::tempdir().unwrap();
        let proc = ProcFs::new(root.path());
        let inside = format!("{WATCHED}/a.scope");
        record(root.path(), 5, 1, &inside, "bash");
        record(root.path(), 6, 5, "/heavy.slice/lwg.scope", "make");
        record(root.path(), 7, 6, &inside, "cc");
        let watched = [WATCHED.to_owned()];
        let process = watched_process(&proc, 7, &watched).unwrap();
        let exec = with_ancestors(&proc, process, &watched);
        let line: Vec<u32> = exec.line.iter().map(|process| process.id.pid).collect();
        assert_eq!(line, [7, 5]);
        assert_eq!(exec.elsewhere, [ProcId { pid: 6, start: 106 }]);
    }
}
