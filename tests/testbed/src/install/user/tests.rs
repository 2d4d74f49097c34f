//! A whole installation into a home of its own, with a systemd that only records.

use std::os::unix::fs::PermissionsExt;

use anyhow::ensure;

use super::*;

/// Answers as a user manager would, and keeps what it was asked.
struct Recorder {
    calls: Vec<String>,
    reachable: bool,
    active: bool,
    fragment: String,
}

impl Session for Recorder {
    fn scope(&self) -> Option<&'static str> {
        Some("--user")
    }

    fn output(&mut self, argv: &[&str]) -> Result<String> {
        let line = argv.join(" ");
        if !self.reachable {
            bail!("Failed to connect to bus");
        }
        if line.contains("FragmentPath") {
            return Ok(self.fragment.clone());
        }
        if line.contains("is-active") {
            ensure!(self.active, "inactive");
            return Ok(String::new());
        }
        if !line.contains("show") {
            self.calls.push(argv[2..].join(" "));
        }
        Ok(String::new())
    }
}

struct Fixture {
    root: tempfile::TempDir,
    places: Places,
    dist: Dist,
    session: Recorder,
}

impl Fixture {
    fn new() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        let mut places =
            Places::new(|name| (name == "HOME").then(|| home.clone().into()), None).unwrap();
        places.system_units = vec![root.path().join("etc/systemd/user")];
        let dist = root.path().join("dist");
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::create_dir_all(dist.join("config")).unwrap();
        std::os::unix::fs::symlink(checkout.join("units"), dist.join("units")).unwrap();
        fs::write(dist.join("config/guard.toml"), "# settings\n").unwrap();
        for program in ["workload-guard", "workload-guardd"] {
            let path = dist.join(program);
            fs::write(&path, "#!/bin/sh\necho \"$@\"\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let session = Recorder {
            calls: vec![],
            reachable: true,
            active: false,
            fragment: places.units.join(UNIT).display().to_string(),
        };
        Fixture {
            dist: Dist::at(&dist).unwrap(),
            places,
            session,
            root,
        }
    }

    fn install(&mut self) -> Result<()> {
        self.install_with(&InstallArgs::default())
    }

    fn install_with(&mut self, args: &InstallArgs) -> Result<()> {
        let original = may_install(&self.places, &mut self.session, args)?;
        let original = original.as_ref();
        install_into(&self.places, &self.dist, &mut self.session, args, original)
    }

    fn uninstall(&mut self, purge: bool) {
        let args = UninstallArgs {
            purge,
            ..UninstallArgs::default()
        };
        uninstall(&self.places, &mut self.session, &args).unwrap();
    }

    /// Every path below the home, relative to it.
    fn home(&self) -> Vec<String> {
        fn walk(folder: &Path, home: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                out.push(path.strip_prefix(home).unwrap().display().to_string());
                if fs::symlink_metadata(&path).unwrap().is_dir() {
                    walk(&path, home, out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.places.home, &self.places.home, &mut out);
        out.sort();
        out
    }
}

const TELL: [&str; 2] = [
    "daemon-reload",
    "call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig",
];

#[test]
fn a_first_installation_writes_all_files_and_starts_the_guard() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    for path in targets(&fixture.places).unwrap() {
        assert!(path.exists(), "{}", path.display());
    }
    assert_eq!(
        fixture.session.calls,
        [TELL[0], TELL[1], "enable --now workload-guard.service"]
    );
    let manual = fs::read_to_string(fixture.places.data.join("man/man1/workload-guard.1")).unwrap();
    assert_eq!(manual, "man workload-guard.1\n");
    let left = fixture
        .home()
        .into_iter()
        .find(|path| path.contains(".workload-guard-"));
    assert_eq!(left, None);
}

#[test]
fn the_folder_of_enabled_units_was_left_behind() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    assert!(fixture.places.own_units.is_dir());
    fixture.uninstall(false);
    assert!(!fixture.places.home.join(".config/systemd").exists());

    // But what was there before stays.
    fs::create_dir_all(&fixture.places.own_units).unwrap();
    fixture.install().unwrap();
    fixture.uninstall(false);
    assert!(fixture.places.own_units.is_dir());
}

#[test]
fn uninstall_leaves_the_home_as_it_was_but_for_the_persons_data() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.places.units.join("mine.service.d")).unwrap();
    let before = fixture.home();
    fixture.install().unwrap();
    fixture.session.calls.clear();
    fixture.uninstall(false);
    assert_eq!(
        fixture.session.calls,
        [
            "disable --now workload-guard.service workload-guard-metrics.timer",
            TELL[0],
            TELL[1]
        ]
    );
    let after = fixture.home();
    let data: Vec<&String> = after.iter().filter(|path| !before.contains(path)).collect();
    assert_eq!(
        data,
        [
            ".config",
            ".config/linux-workload-guard",
            ".config/linux-workload-guard/guard.toml"
        ]
    );
    fixture.uninstall(true);
    assert!(!fixture.places.config.exists());
}

#[test]
fn an_upgrade_keeps_the_settings_and_restarts_only_what_ran() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    fs::write(fixture.places.config.join("guard.toml"), "# mine\n").unwrap();
    let files = fixture.home();

    fixture.session.calls.clear();
    fixture.install().unwrap();
    assert_eq!(fixture.session.calls, TELL);

    fixture.session = Recorder {
        calls: vec![],
        active: true,
        ..fixture.session
    };
    fixture.install().unwrap();
    assert_eq!(
        fixture.session.calls,
        [TELL[0], TELL[1], "restart workload-guard.service"]
    );

    assert_eq!(
        fs::read_to_string(fixture.places.config.join("guard.toml")).unwrap(),
        "# mine\n"
    );
    assert_eq!(fixture.home(), files);
    // The folders that the first one made are still known.
    fixture.uninstall(true);
    assert_eq!(fixture.home(), [".config"]);
}

#[test]
fn a_file_that_a_newer_version_lacks_is_removed() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    let old = fixture.places.units.join("old.slice");
    fs::write(&old, "").unwrap();
    let manifest = fixture.places.manifest();
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}file {}\n", old.display())).unwrap();
    fixture.install().unwrap();
    assert!(!old.exists());
    assert_eq!(fs::read_to_string(&manifest).unwrap(), text);
}

#[test]
fn the_python_original_is_left_alone() {
    for file in [
        "home/.config/systemd/user/workload-router.service",
        "home/.local/share/systemd/user/workload-router.service",
        "etc/systemd/user/workload-router.service",
        "home/.local/bin/workload-router.py",
    ] {
        let mut fixture = Fixture::new();
        let path = fixture.root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "[Service]\n").unwrap();
        let before = fixture.home();
        let error = fixture.install().unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert_eq!(fixture.home(), before);
        assert!(fixture.session.calls.is_empty());
    }
}

fn agreed() -> InstallArgs {
    InstallArgs {
        replace_original: true,
        ..InstallArgs::default()
    }
}

/// The Python original as its installer leaves it; answers its files.
fn with_original(fixture: &Fixture) -> Vec<PathBuf> {
    let places = &fixture.places;
    let files = [
        (
            places.own_units.join("workload-router.service"),
            "[Service]\nExecStart=/usr/bin/python3 %h/opt/workload-router.py\n",
        ),
        (places.own_units.join("heavy-workload.slice"), "[Slice]\n"),
        (
            places.own_units.join("browser-automation.timer"),
            "[Timer]\n",
        ),
        (
            places.home.join("opt/workload-router.py"),
            "#!/usr/bin/python3\n",
        ),
        (places.bin.join("workload-guard"), "#!/bin/sh\n"),
        (places.bin.join("run-workload"), "#!/bin/sh\n"),
    ];
    for (path, text) in &files {
        files::write(path, text).unwrap();
    }
    files::write(&places.own_units.join("mine.service"), "[Service]\n").unwrap();
    files::write(&places.state.join("history.jsonl"), "{}\n").unwrap();
    files::write(
        &places.config.join("workload-guard.env"),
        "WORKLOAD_GUARD_SAMPLE_SEC=5\n",
    )
    .unwrap();
    files.map(|(path, _)| path).into()
}

#[test]
fn with_consent_the_python_original_is_replaced_and_its_settings_taken_over() {
    let mut fixture = Fixture::new();
    let old = with_original(&fixture);
    fixture.session.active = true;
    fixture.install_with(&agreed()).unwrap();
    let places = &fixture.places;
    for path in &old {
        let mut renamed = path.clone().into_os_string();
        renamed.push(".superseded");
        assert!(Path::new(&renamed).exists(), "{}", path.display());
    }
    assert!(!old[0].exists() && !old[3].exists());
    let env = places.config.join("workload-guard.env");
    assert_eq!(
        fs::read_to_string(places.config.join("guard.toml.d/40-workload-router.toml")).unwrap(),
        format!("config import {}\n", env.display())
    );
    assert!(!env.exists());
    assert!(places.state.join("history.jsonl").exists());
    assert!(places.own_units.join("mine.service").exists());
    assert_eq!(
        fixture.session.calls,
        [
            "disable --now workload-router.service",
            "disable --now browser-automation.timer",
            TELL[0],
            TELL[1],
            "enable --now workload-guard.service"
        ]
    );
    // It is gone now: the next installation asks nobody.
    fixture.install().unwrap();
}

#[test]
fn an_original_that_cannot_be_replaced_has_its_files_back() {
    let mut fixture = Fixture::new();
    with_original(&fixture);
    let before = fixture.home();
    // A folder where a file of ours goes.
    let taken = fixture.places.units.join("heavy.slice/x");
    files::write(&taken, "").unwrap();
    fs::remove_file(&taken).unwrap();
    let original =
        Original::find(&fixture.places, &targets(&fixture.places).unwrap(), &[]).unwrap();
    let original = Original {
        files: original
            .files
            .into_iter()
            .filter(|path| !path.is_dir())
            .collect(),
        ..original
    };
    let error = install_into(
        &fixture.places,
        &fixture.dist,
        &mut fixture.session,
        &agreed(),
        Some(&original),
    )
    .unwrap_err();
    assert!(
        format!("{error:#}").contains("has its files back"),
        "{error:#}"
    );
    fs::remove_dir(taken.parent().unwrap()).unwrap();
    let mut after = fixture.home();
    // Made for this test.
    after.retain(|path| !path.starts_with(".local/share"));
    assert_eq!(after, before);
}

#[test]
fn an_original_of_the_whole_machine_is_not_a_users_to_replace() {
    let mut fixture = Fixture::new();
    let unit = fixture
        .root
        .path()
        .join("etc/systemd/user/workload-router.service");
    files::write(&unit, "[Service]\n").unwrap();
    let error = fixture.install_with(&agreed()).unwrap_err().to_string();
    assert!(error.contains("administers"), "{error}");
    assert!(unit.exists());
}

#[test]
fn another_prefix_has_programs_and_manual_and_systemd_still_finds_the_units() {
    let mut fixture = Fixture::new();
    let home = fixture.places.home.clone();
    fixture.places = Places::new(
        |name| (name == "HOME").then(|| home.clone().into()),
        Some(&home.join("opt/guard")),
    )
    .unwrap();
    fixture.places.system_units.clear();
    fixture.install().unwrap();
    for path in [
        "opt/guard/bin/run-workload",
        "opt/guard/share/man/man1/workload-guard.1",
        "opt/guard/lib/linux-workload-guard/workload-guardd",
        ".local/share/systemd/user/workload-guard.service",
    ] {
        assert!(home.join(path).exists(), "{path}");
    }
    let unit = fs::read_to_string(fixture.places.units.join(UNIT)).unwrap();
    assert!(unit.contains("%h/opt/guard/lib/linux-workload-guard/workload-guardd"));
    // The list of what was installed is where the next one looks, whatever its prefix.
    fixture.places =
        Places::new(|name| (name == "HOME").then(|| home.clone().into()), None).unwrap();
    fixture.uninstall(true);
    assert_eq!(fixture.home(), [".config"]);
}

#[test]
fn our_own_alias_is_not_the_python_original() {
    let mut fixture = Fixture::new();
    fixture.install().unwrap();
    fs::create_dir_all(&fixture.places.own_units).unwrap();
    let alias = fixture.places.own_units.join("workload-router.service");
    std::os::unix::fs::symlink(fixture.places.units.join(UNIT), &alias).unwrap();
    fixture.install().unwrap();
    fixture.uninstall(false);
    assert!(fs::symlink_metadata(&alias).is_err());
}

#[test]
fn a_file_of_someone_else_is_not_overwritten() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(&fixture.places.bin).unwrap();
    let taken = fixture.places.bin.join("run-workload");
    fs::write(&taken, "#!/bin/sh\n").unwrap();
    let before = fixture.home();
    let error = fixture.install().unwrap_err().to_string();
    assert!(error.contains(&taken.display().to_string()), "{error}");
    assert_eq!(fixture.home(), before);
}

#[test]
fn without_a_user_manager_nothing_changes_unless_no_start_is_given() {
    let mut fixture = Fixture::new();
    fixture.session.reachable = false;
    let error = fixture.install().unwrap_err().to_string();
    assert!(error.contains("--no-start"), "{error}");
    assert_eq!(fixture.home(), [""; 0]);
    fixture
        .install_with(&InstallArgs {
            no_start: true,
            ..InstallArgs::default()
        })
        .unwrap();
    assert!(fixture.places.manifest().exists());
    fixture.uninstall(true);
    assert_eq!(fixture.home(), [".config"]);
}

#[test]
fn a_unit_that_wins_over_ours_is_named() {
    let mut fixture = Fixture::new();
    fixture.session.fragment = "/home/x/.config/systemd/user/workload-guard.service\n".into();
    let error = fixture.install().unwrap_err().to_string();
    assert!(
        error.contains("/home/x/.config/systemd/user/workload-guard.service wins"),
        "{error}"
    );
    assert_eq!(fixture.session.calls, TELL);
}

#[test]
fn a_program_that_does_not_run_here_changes_nothing() {
    let mut fixture = Fixture::new();
    fs::write(
        fixture.root.path().join("dist/workload-guard"),
        "#!/nonexistent\n",
    )
    .unwrap();
    let error = format!("{:#}", fixture.install().unwrap_err());
    assert!(error.contains("does not run here"), "{error}");
    assert_eq!(fixture.home(), [""; 0]);
}
