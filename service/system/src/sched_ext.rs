//! Whether a scheduler of sched_ext runs in place of the kernel's own (kernel,
//! Documentation/scheduler/sched-ext.rst): it need not heed weights or quotas.

use std::fs;
use std::path::Path;

/// The scheduler's name, while one is loaded; below `sys`, such as `/sys`.
pub fn loaded(sys: &Path) -> Option<String> {
    let folder = sys.join("kernel/sched_ext");
    // `enabling` and `disabling` pass within moments.
    let state = fs::read_to_string(folder.join("state")).ok()?;
    (state.trim() == "enabled").then(|| {
        let name = fs::read_to_string(folder.join("root/ops")).unwrap_or_default();
        match name.trim() {
            "" => "of an unknown name".to_owned(),
            name => guard_policy::printable::printable(name),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_enabled_scheduler_counts() {
        let sys = tempfile::tempdir().expect("a folder");
        assert_eq!(loaded(sys.path()), None);
        let folder = sys.path().join("kernel/sched_ext");
        fs::create_dir_all(folder.join("root")).expect("made");
        let state = |text: &str| fs::write(folder.join("state"), text).expect("written");
        state("disabled\n");
        assert_eq!(loaded(sys.path()), None);
        state("enabled\n");
        assert_eq!(loaded(sys.path()), Some("of an unknown name".to_owned()));
        fs::write(folder.join("root/ops"), "lavd_1.0\n").expect("written");
        assert_eq!(loaded(sys.path()), Some("lavd_1.0".to_owned()));
    }
}
