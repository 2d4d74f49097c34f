//! A whole installation into a root of its own, with a systemd that only records.

use std::os::unix::fs::PermissionsExt;

use super::*;

struct Recorder {
    calls: Vec<String>,
    reachable: bool,
}

impl Session for Recorder {
    fn scope(&self) -> Option<&'static str> {
        None
    }

    fn output(&mut self, argv: &[&str]) -> Result<String> {
        if !self.reachable {
            bail!("System has not been booted with systemd");
        }
        if !argv.contains(&"show") {
            self.calls.push(argv.join(" "));
        }
        Ok(String::new())
    }
}

struct Fixture {
    root: tempfile::TempDir,
    machine: Machine,
    dist: Dist,
    session: Recorder,
}

/// The command line of a test: it says what it was asked, and refuses what the file `refuse` beside it names.
const CLI: &str = "#!/bin/sh\nif grep -qsx -- \"$*\" \"$(dirname \"$0\")/refuse\"; then echo cannot >&2; exit 1; fi\necho \"$@\"\n";

impl Fixture {
    fn new() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let dist = root.path().join("dist");
        fs::create_dir(&dist).unwrap();
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for folder in ["units", "config", "polkit", "boot"] {
            std::os::unix::fs::symlink(checkout.join(folder), dist.join(folder)).unwrap();
        }
        for program in ["workload-guard", "workload-guardd", "bench-prepd"] {
            let path = dist.join(program);
            fs::write(&path, CLI).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let there = root.path().join("machine");
        for folder in ["etc/bench-profile", "usr/local/bin", "usr/share"] {
            fs::create_dir_all(there.join(folder)).unwrap();
        }
        Fixture {
            machine: Machine::new(&there, Path::new("/usr/local")).unwrap(),
            dist: Dist::at(&dist).unwrap(),
            session: Recorder {
                calls: vec![],
                reachable: true,
            },
            root,
        }
    }

    fn install(&mut self) -> Result<()> {
        self.install_with(&InstallArgs::default())
    }

    fn install_with(&mut self, args: &InstallArgs) -> Result<()> {
        may_install(&self.machine, &mut self.session, args)?;
        install_into(&self.machine, &self.dist, &mut self.session, args)
    }

    fn uninstall(&mut self, purge: bool) -> Result<()> {
        let args = UninstallArgs {
            purge,
            system: true,
            prefix: None,
        };
        uninstall_from(&self.machine, &mut self.session, &args)
    }

    fn write(&self, path: &str, text: &str) {
        files::write(&self.machine.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.machine.at(path)).unwrap()
    }

    /// Every file and link of the machine; folders that are empty, too.
    fn listing(&self) -> Vec<String> {
        fn walk(folder: &Path, root: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_folder = fs::symlink_metadata(&path).unwrap().is_dir();
                if is_folder && fs::read_dir(&path).unwrap().next().is_some() {
                    walk(&path, root, out);
                } else {
                    out.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.machine.root, &self.machine.root, &mut out);
        out.sort();
        out
    }

    fn backups(&self) -> Vec<String> {
        let prefix = BACKUPS.trim_start_matches('/');
        let all = self.listing().into_iter();
        all.filter_map(|path| {
            let rest = path.strip_prefix(prefix)?.trim_start_matches('/');
            rest.split_once('/').map(|(_, path)| path.to_owned())
        })
        .collect()
    }
}

#[test]
fn a_first_installation_proposes_a_machine_file_and_enables_the_unit() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    for path in layout::targets(&fixture.machine.folders, &[Part::Bench]).unwrap() {
        assert!(
            files::exists(&fixture.machine.at(&path)),
            "{}",
            path.display()
        );
    }
    assert_eq!(fixture.read(MACHINE), "bench plan\n");
    assert_eq!(
        fixture.session.calls,
        [
            "systemctl daemon-reload",
            "busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig",
            "systemctl stop bench-prepd.service",
            "systemctl enable bench-prep.service",
        ]
    );
    assert!(fixture.backups().is_empty());
    assert!(!files::exists(
        &fixture.machine.at("/usr/local/bin/workload-guardd")
    ));
}

#[test]
fn uninstall_leaves_the_machine_as_it_was_but_for_the_machine_file() {
    let mut fixture = Fixture::new();
    fixture.write("/usr/local/bin/mine", "");
    fixture.write("/etc/dbus-1/system.d/mine.conf", "");
    let mut before = fixture.listing();
    fixture.install().unwrap();
    fixture.uninstall(false).unwrap();
    let mut after = fixture.listing();
    after.retain(|path| !before.contains(path));
    assert_eq!(after, ["etc/bench-profile/machine.toml"]);
    fixture.uninstall(true).unwrap();
    // Of the machine file; it was empty.
    before.retain(|path| path != "etc/bench-profile");
    assert_eq!(fixture.listing(), before);
}

#[test]
fn an_edited_machine_file_and_the_choice_not_to_enable_survive_an_upgrade() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    fixture.write(MACHINE, "# mine\n");
    fixture.write(
        "/usr/local/lib/systemd/system/bench-prepd.service",
        "# edited\n",
    );
    fixture.session.calls.clear();
    fixture.install().unwrap();
    assert_eq!(fixture.read(MACHINE), "# mine\n");
    assert!(
        !fixture
            .session
            .calls
            .iter()
            .any(|call| call.contains("enable"))
    );
    assert_eq!(
        fixture.backups(),
        ["usr/local/lib/systemd/system/bench-prepd.service"]
    );
    fixture.uninstall(true).unwrap();
}

fn with_older_tools(fixture: &Fixture) {
    for path in [
        "/usr/local/bin/bench-prep",
        "/usr/local/bin/bench-prep-multicore",
        "/usr/local/bin/bench-profile-status",
        "/usr/local/lib/bench-profile/bench-profile-common.sh",
        "/etc/boot/hooks/post.d/95-add-benchmark-boot-entries",
        "/etc/systemd/system/bench-prep.service",
        "/boot/limine.conf",
    ] {
        fixture.write(path, "old\n");
    }
    fixture.write(
        "/usr/local/lib/bench-profile/machine.conf",
        "BENCH_CPUS=8-15\n",
    );
}

#[test]
fn the_older_tools_are_backed_up_renamed_and_their_machine_taken_over() {
    let mut fixture = Fixture::new();
    with_older_tools(&fixture);
    fixture.install().unwrap();
    let import = format!(
        "bench config --import {}\n",
        fixture
            .machine
            .at("/usr/local/lib/bench-profile/machine.conf")
            .display()
    );
    assert_eq!(fixture.read(MACHINE), import);
    assert_eq!(
        fixture.backups(),
        [
            "boot/limine.conf",
            "etc/boot/hooks/post.d/95-add-benchmark-boot-entries",
            "etc/systemd/system/bench-prep.service",
            "usr/local/bin/bench-prep",
            "usr/local/bin/bench-prep-multicore",
            "usr/local/bin/bench-profile-status",
            "usr/local/lib/bench-profile/bench-profile-common.sh",
            "usr/local/lib/bench-profile/machine.conf",
        ]
    );
    for path in [
        "/usr/local/bin/bench-prep-multicore.superseded",
        "/etc/boot/hooks/post.d/95-add-benchmark-boot-entries.superseded",
        "/etc/systemd/system/bench-prep.service.superseded",
        "/usr/local/lib/bench-profile.superseded/machine.conf",
        "/usr/local/bin/bench-prep.superseded",
    ] {
        assert!(files::exists(&fixture.machine.at(path)), "{path}");
    }
    let link = fs::read_link(fixture.machine.at("/usr/local/bin/bench-prep")).unwrap();
    assert_eq!(link, Path::new("workload-guard"));
    assert_eq!(fixture.read("/boot/limine.conf"), "old\n");
    // And once more: nothing of ours is taken for theirs.
    let files = fixture.listing();
    fixture.install().unwrap();
    assert_eq!(fixture.listing(), files);
}

#[test]
fn what_cannot_be_taken_over_changes_nothing() {
    let mut fixture = Fixture::new();
    with_older_tools(&fixture);
    let before = fixture.listing();
    let old = fixture
        .machine
        .at("/usr/local/lib/bench-profile/machine.conf");
    let refuse = format!("bench config --import {}\n", old.display());
    fs::write(fixture.root.path().join("dist/refuse"), refuse).unwrap();
    let error = format!("{:#}", fixture.install().unwrap_err());
    assert!(
        error.contains("machine.conf cannot be taken over"),
        "{error}"
    );
    assert_eq!(fixture.listing(), before);
}

#[test]
fn a_machine_that_cannot_be_planned_is_installed_without_a_machine_file() {
    let mut fixture = Fixture::new();
    fs::write(fixture.root.path().join("dist/refuse"), "bench plan\n").unwrap();
    fixture.install().unwrap();
    assert!(!files::exists(&fixture.machine.at(MACHINE)));
}

#[test]
fn a_file_in_the_way_and_a_systemd_that_is_away_change_nothing() {
    let mut fixture = Fixture::new();
    fixture.write("/usr/local/bin/workload-guard", "#!/bin/sh\n");
    let error = fixture.install().unwrap_err().to_string();
    assert!(error.contains("usr/local/bin/workload-guard"), "{error}");
    assert!(!files::exists(
        &fixture.machine.at("/usr/local/bin/bench-prepd")
    ));
    fs::remove_file(fixture.machine.at("/usr/local/bin/workload-guard")).unwrap();
    fixture.session.reachable = false;
    let error = fixture.install().unwrap_err().to_string();
    assert!(error.contains("--no-start"), "{error}");
    fixture
        .install_with(&InstallArgs {
            no_start: true,
            ..InstallArgs::default()
        })
        .unwrap();
    assert!(fixture.session.calls.is_empty());
    assert!(files::exists(
        &fixture.machine.at("/usr/local/bin/bench-prepd")
    ));
}

#[test]
fn a_machine_in_a_profile_keeps_what_can_put_it_back() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    fixture.write(ORIGINALS, "{}");
    let before = fixture.listing();
    let error = fixture.uninstall(false).unwrap_err().to_string();
    assert!(error.contains("bench restore"), "{error}");
    assert_eq!(fixture.listing(), before);
}

#[test]
fn a_second_part_does_not_take_the_first_away() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    fixture
        .install_with(&InstallArgs {
            parts: vec![Part::Guard],
            ..InstallArgs::default()
        })
        .unwrap();
    for path in [
        "/usr/local/bin/bench-prepd",
        "/usr/local/bin/workload-guardd",
    ] {
        assert!(files::exists(&fixture.machine.at(path)), "{path}");
    }
    fixture.uninstall(true).unwrap();
    assert_eq!(fixture.listing(), ["etc", "usr/local/bin", "usr/share"]);
}

#[test]
fn a_time_is_told_as_a_date() {
    assert_eq!(stamp(0), "19700101T000000Z");
    assert_eq!(stamp(1_709_210_096), "20240229T123456Z");
    assert_eq!(stamp(1_796_095_800), "20261201T033000Z");
}
