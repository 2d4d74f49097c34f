//! Programs that set priorities or groups of the same processes.

use crate::proc::ProcFs;

/// Names as the kernel keeps them, at most 15 bytes.
const TOOLS: &[&str] = &[
    "ananicy",
    "ananicy-cpp",
    "auto-cpufreq",
    "cgrulesengd",
    "gamemoded",
    "nohang",
    "prelockd",
    "system76-schedu",
    "uresourced",
    "verynice",
];

/// The Python original, which an interpreter runs.
const ORIGINAL: &str = "workload-router.py";

/// A program that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: String,
    /// Its PID.
    pub pid: u32,
}

/// Those that run now, by PID.
pub fn competing(proc: &ProcFs) -> Vec<Tool> {
    let mut found = Vec::new();
    for pid in proc.pids().unwrap_or_default() {
        let Ok(Some(stat)) = proc.stat(pid) else {
            continue;
        };
        let comm = stat.comm();
        let program = if TOOLS.contains(&comm.as_ref()) {
            comm.as_ref()
        } else if comm.starts_with("python") || comm.starts_with("workload-router") {
            let argv = proc
                .argv_bounded(pid, 4096)
                .ok()
                .flatten()
                .unwrap_or_default();
            // As a script, not as an argument of an editor or of a search.
            match argv
                .iter()
                .take(2)
                .any(|word| word.rsplit('/').next() == Some(ORIGINAL))
            {
                true => ORIGINAL,
                false => continue,
            }
        } else {
            continue;
        };
        found.push(Tool {
            program: program.to_owned(),
            pid,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::proc::stat_line;

    #[test]
    fn tools_are_known_by_name_and_the_original_by_its_script() {
        let folder = tempfile::tempdir().expect("a folder");
        for (pid, comm, argv) in [
            (5, "ananicy-cpp", "/usr/bin/ananicy-cpp\0start\0"),
            (
                6,
                "python3",
                "python3\0/home/a/.local/bin/workload-router.py\0",
            ),
            (7, "vim", "vim\0workload-router.py\0"),
            (8, "python3", "python3\0-c\0print('workload-router.py')\0"),
            (9, "system76-schedu", "system76-scheduler\0daemon\0"),
        ] {
            let process = folder.path().join(format!("{pid}"));
            fs::create_dir(&process).expect("made");
            fs::write(process.join("stat"), stat_line(pid, comm, 1, (0, 0), 5, 1))
                .expect("written");
            fs::write(process.join("cmdline"), argv).expect("written");
        }
        let found = competing(&ProcFs::new(folder.path()));
        let names: Vec<(u32, &str)> = found
            .iter()
            .map(|tool| (tool.pid, tool.program.as_str()))
            .collect();
        assert_eq!(
            names,
            [(5, "ananicy-cpp"), (6, ORIGINAL), (9, "system76-schedu")]
        );
    }
}
