//! What is known of a process when it is about to be moved. Gathered here, judged by
//! [`guard_policy::eligibility`].

use std::io;

use guard_policy::eligibility::{Facts, UnitFacts};
use guard_policy::id::ProcId;

use crate::cgroup::units_of_cgroup;
use crate::proc::ProcFs;

/// Programs that are a message bus, as the kernel cuts their names (15 bytes).
const BUS_PROGRAMS: [&str; 3] = ["dbus-daemon", "dbus-broker", "dbus-broker-lau"];
/// Units that are the message bus.
const BUS_UNITS: [&str; 2] = ["dbus.service", "dbus-broker.service"];

/// The guard, whose reach decides much of the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its PID.
    pub pid: u32,
    /// The user that it works for.
    pub uid: u32,
    /// The control group of that user's manager (`ControlGroup` of systemd's Manager).
    pub manager_cgroup: String,
}

impl Guard {
    /// This process, with the control group that systemd gives the user's manager.
    pub fn current() -> Guard {
        let uid = nix::unistd::getuid().as_raw();
        Guard {
            pid: std::process::id(),
            uid,
            manager_cgroup: user_manager_cgroup(uid),
        }
    }
}

/// Where systemd puts the manager of a user (user@.service(5)).
pub fn user_manager_cgroup(uid: u32) -> String {
    format!("/user.slice/user-{uid}.slice/user@{uid}.service")
}

/// Everything that `/proc` says of a process; `None` when it is gone, or is another one by now.
///
/// Blocks, for a read of each of its threads. What only systemd knows of its unit is left as it is for a
/// process without a role: [`set_role`] fills it in.
pub fn gather(proc: &ProcFs, id: ProcId, guard: &Guard) -> io::Result<Option<Facts>> {
    let Some(stat) = proc.stat(id.pid)? else {
        return Ok(None);
    };
    let (Some(uids), Some(argv), Some(threads), Some(cgroup)) = (
        proc.uids(id.pid)?,
        proc.argv(id.pid)?,
        proc.policies(id.pid)?,
        proc.cgroup(id.pid),
    ) else {
        return Ok(None);
    };
    // At the end, so that all of the above is of this process.
    if !proc.is_alive(id)? {
        return Ok(None);
    }
    let init_scope = |manager: &str| cgroup.strip_prefix(manager) == Some("/init.scope");
    Ok(Some(Facts {
        foreign_uid: uids.other_than(guard.uid),
        kernel_thread: stat.is_kernel_thread(),
        realtime: threads.iter().any(|(_, thread)| thread.is_realtime()),
        terminal_leader: stat.session == id.pid && stat.tty_nr != 0,
        login_shell: argv.first().is_some_and(|program| program.starts_with('-')),
        manager: id.pid == 1 || init_scope("") || init_scope(&guard.manager_cgroup),
        bus: BUS_PROGRAMS.contains(&&*stat.comm()),
        guard: id.pid == guard.pid,
        unit: unit_facts(&cgroup, &guard.manager_cgroup),
    }))
}

/// What a control group says of the unit of the processes in it.
pub fn unit_facts(cgroup: &str, manager_cgroup: &str) -> UnitFacts {
    let below_manager = cgroup
        .strip_prefix(manager_cgroup)
        .is_some_and(|rest| rest.starts_with('/'));
    UnitFacts {
        name: units_of_cgroup(cgroup)
            .next()
            .map(|found| found.unit.to_owned())
            .unwrap_or_default(),
        outside_user_manager: !below_manager,
        sandbox: units_of_cgroup(cgroup).any(|found| is_sandbox(found.unit)),
        ..UnitFacts::default()
    }
}

/// Fills in what systemd says of the role of a process in its service.
///
/// `tracked`: it is the service's `MainPID` or `ControlPID`. `hears_children`: the service's
/// `NotifyAccess` is `all` or `exec`, so that messages of the others count, and would be lost after a move.
pub fn set_role(facts: &mut Facts, tracked: bool, hears_children: bool) {
    facts.unit.main_or_control = tracked;
    facts.unit.notifier = hears_children && !tracked;
    // A bus under a name that is not in the list above.
    facts.bus |= tracked && BUS_UNITS.contains(&facts.unit.name.as_str());
}

/// A Flatpak's scope (`app-flatpak-ID-NUMBER.scope`), or a snap's scope or service (`snap.NAME.….scope`).
fn is_sandbox(unit: &str) -> bool {
    let scope = unit.strip_suffix(".scope");
    let either = scope.or_else(|| unit.strip_suffix(".service"));
    scope.is_some_and(|name| name.starts_with("app-flatpak-"))
        || either.is_some_and(|name| name.starts_with("snap."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::proc::stat_line;

    const MANAGER: &str = "/user.slice/user-1000.slice/user@1000.service";

    struct Recorded(tempfile::TempDir);

    impl Recorded {
        /// A usual process: PID 42 of user 1000 in a scope, which each test then makes unusual.
        fn new() -> Recorded {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("42/task/42")).unwrap();
            let recorded = Recorded(root);
            recorded.stat(&stat_line(42, "make", 7, (0, 0), 5, 4096));
            recorded.write(
                "status",
                "Name:\tmake\nTgid:\t42\nUid:\t1000\t1000\t1000\t1000\n",
            );
            recorded.write("cmdline", "make\0-j8\0");
            recorded.write("cgroup", &format!("0::{MANAGER}/app.slice/app-foo.scope\n"));
            recorded
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.path().join("42").join(name), text).unwrap();
        }

        fn stat(&self, line: &str) {
            self.write("stat", line);
            self.write("task/42/stat", line);
        }

        fn facts(&self) -> Facts {
            let guard = Guard {
                pid: 41,
                uid: 1000,
                manager_cgroup: MANAGER.to_owned(),
            };
            gather(
                &ProcFs::new(self.0.path()),
                ProcId { pid: 42, start: 5 },
                &guard,
            )
            .unwrap()
            .unwrap()
        }
    }

    #[test]
    fn a_usual_process_has_nothing_special() {
        let usual = Facts {
            unit: UnitFacts {
                name: "app-foo.scope".to_owned(),
                ..UnitFacts::default()
            },
            ..Facts::default()
        };
        assert_eq!(Recorded::new().facts(), usual);
    }

    #[test]
    fn any_foreign_user_id_counts() {
        for ids in [
            "0\t1000\t1000\t1000",
            "1000\t0\t1000\t1000",
            "1000\t1000\t0\t1000",
        ] {
            let recorded = Recorded::new();
            recorded.write("status", &format!("Tgid:\t42\nUid:\t{ids}\n"));
            assert_eq!(recorded.facts().foreign_uid, Some(0), "{ids}");
        }
    }

    #[test]
    fn one_realtime_thread_is_enough() {
        let recorded = Recorded::new();
        fs::create_dir_all(recorded.0.path().join("42/task/43")).unwrap();
        let line =
            stat_line(43, "audio", 7, (0, 0), 5, 4096).replace(" 17 1 0 0 0", " 17 1 50 1 0");
        recorded.write("task/43/stat", &line);
        assert!(recorded.facts().realtime);
    }

    #[test]
    fn shells_are_told_by_their_session_and_their_name() {
        let recorded = Recorded::new();
        recorded.stat(
            &stat_line(42, "bash", 7, (0, 0), 5, 4096).replace(" 42 77 34816 ", " 42 42 34816 "),
        );
        assert!(recorded.facts().terminal_leader);
        recorded.stat(
            &stat_line(42, "daemon", 7, (0, 0), 5, 4096).replace(" 42 77 34816 ", " 42 42 0 "),
        );
        assert!(
            !recorded.facts().terminal_leader,
            "a session without a terminal"
        );
        recorded.write("cmdline", "-bash\0");
        assert!(recorded.facts().login_shell);
    }

    #[test]
    fn managers_and_buses_are_known() {
        let recorded = Recorded::new();
        recorded.write("cgroup", &format!("0::{MANAGER}/init.scope\n"));
        assert!(recorded.facts().manager);
        recorded.write(
            "cgroup",
            "0::/user.slice/user-1001.slice/user@1001.service/init.scope\n",
        );
        assert!(!recorded.facts().manager && recorded.facts().unit.outside_user_manager);
        recorded.stat(&stat_line(42, "dbus-broker-lau", 7, (0, 0), 5, 4096));
        assert!(recorded.facts().bus);
    }

    #[test]
    fn another_process_under_the_same_pid_has_no_facts() {
        let recorded = Recorded::new();
        let guard = Guard {
            pid: 1,
            uid: 1000,
            manager_cgroup: MANAGER.to_owned(),
        };
        let proc = ProcFs::new(recorded.0.path());
        assert_eq!(
            gather(&proc, ProcId { pid: 42, start: 6 }, &guard).unwrap(),
            None
        );
        assert_eq!(
            gather(&proc, ProcId { pid: 43, start: 5 }, &guard).unwrap(),
            None
        );
    }

    #[test]
    fn the_unit_is_judged_by_its_place_and_name() {
        let facts = |path: &str| unit_facts(path, MANAGER);
        assert!(!facts(&format!("{MANAGER}/app.slice/x.service")).outside_user_manager);
        for outside in [
            "/user.slice/user-1000.slice/session-3.scope",
            "/system.slice/cron.service",
            "/user.slice/user-1000.slice/user@1000.service-not",
            "/",
        ] {
            assert!(facts(outside).outside_user_manager, "{outside}");
        }
        for (unit, sandbox) in [
            ("app-flatpak-org.gimp.GIMP-12.scope", true),
            ("snap.firefox.firefox-1234.scope", true),
            ("snap.lxd.user-daemon.service", true),
            ("app-gnome-flatpak-12.scope", false),
            ("snapper.service", false),
        ] {
            assert_eq!(
                facts(&format!("{MANAGER}/app.slice/{unit}")).sandbox,
                sandbox,
                "{unit}"
            );
            assert_eq!(
                facts(&format!("{MANAGER}/app.slice/{unit}/inner.scope")).sandbox,
                sandbox,
                "{unit}"
            );
        }
        assert_eq!(facts("/").name, "");
    }

    #[test]
    fn systemd_says_what_role_a_process_has() {
        let mut facts = Recorded::new().facts();
        set_role(&mut facts, false, true);
        assert!(facts.unit.notifier && !facts.unit.main_or_control && !facts.bus);
        facts.unit.name = "dbus.service".to_owned();
        set_role(&mut facts, true, true);
        assert!(!facts.unit.notifier && facts.unit.main_or_control && facts.bus);
    }

    #[test]
    fn this_process_is_the_guard() {
        let proc = ProcFs::default();
        let id = proc.identify(std::process::id()).unwrap().unwrap();
        let facts = gather(&proc, id, &Guard::current()).unwrap().unwrap();
        assert!(
            facts.guard
                && facts.foreign_uid.is_none()
                && !facts.kernel_thread
                && !facts.login_shell
        );
    }
}
