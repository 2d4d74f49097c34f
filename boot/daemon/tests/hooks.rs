//! The files that boot loaders and kernel installations run: they are shell that parses, and whatever they are called
//! with or whatever is missing, they end with 0 and write nothing where there is nothing to do.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

const HOOKS: [&str; 3] = [
    "80-bench-profile-boot-entries",
    "95-bench-profile.install",
    "42_bench_profiles",
];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../hooks"))
}

fn run(script: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new("sh")
        .args(["-c", script, "hook"])
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .output()
        .expect("sh")
}

/// The hook with another program in the place of ours.
fn with_program(hook: &str, program: &str) -> String {
    let text = std::fs::read_to_string(folder().join(hook)).expect("a hook");
    text.replace("/usr/bin/workload-guard", program)
}

#[test]
fn they_are_executable_shell_that_sorts_where_it_must() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.sort();
    let mut known = HOOKS.to_vec();
    known.sort_unstable();
    assert_eq!(found, known);
    for hook in HOOKS {
        let path = folder().join(hook);
        let mode = std::fs::metadata(&path)
            .expect("a hook")
            .permissions()
            .mode();
        assert_eq!(mode & 0o111, 0o111, "{hook}");
        let parsed = Command::new("sh")
            .arg("-n")
            .arg(&path)
            .output()
            .expect("sh");
        assert!(
            parsed.status.success() && parsed.stderr.is_empty(),
            "{hook}: {parsed:?}"
        );
    }
    // Before the warnings of hashes and the enrolment; behind 90-loaderentry; behind GRUB's own.
    assert!(HOOKS[0] < "89-" && HOOKS[1] > "90-loaderentry.install" && HOOKS[2] > "41_custom");
}

#[test]
fn a_failure_of_ours_is_told_and_breaks_nothing_off() {
    let boot = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(boot.path().join("loader/entries")).expect("a folder");
    let root = boot.path().to_str().expect("a path");
    let variables = [
        ("KERNEL_INSTALL_BOOT_ROOT", root),
        ("KERNEL_INSTALL_LAYOUT", "bls"),
    ];
    for (hook, args) in [
        (HOOKS[0], &[][..]),
        (HOOKS[1], &["add", "6.12", "/x"]),
        (HOOKS[1], &["remove", "6.12", "/x"]),
    ] {
        let failed = run(&with_program(hook, "/bin/false"), args, &variables);
        assert_eq!(failed.status.code(), Some(0), "{hook}");
        let said = String::from_utf8_lossy(&failed.stderr);
        assert!(
            said.contains("no benchmark entries were made"),
            "{hook}: {said}"
        );
        let absent = run(&with_program(hook, "/nonexistent"), args, &variables);
        assert_eq!(
            (absent.status.code(), absent.stderr.len()),
            (Some(0), 0),
            "{hook}"
        );
        // What ours is called with.
        let called = run(&with_program(hook, "/bin/echo"), args, &variables);
        let called = String::from_utf8_lossy(&called.stdout).into_owned();
        assert!(
            called.starts_with("bench boot-entries regenerate --hook --loader "),
            "{called}"
        );
        assert_eq!(
            called.contains(&format!("--boot {root}")),
            hook == HOOKS[1],
            "{called}"
        );
    }
    for (args, variables) in [
        (&["inspect"][..], &variables[..]),
        (
            &["add"],
            &[
                ("KERNEL_INSTALL_BOOT_ROOT", root),
                ("KERNEL_INSTALL_LAYOUT", "uki"),
            ],
        ),
        (&["add"], &[("KERNEL_INSTALL_BOOT_ROOT", "/nonexistent")]),
    ] {
        let nothing = run(&with_program(HOOKS[1], "/bin/echo"), args, variables);
        assert_eq!(
            (nothing.status.code(), nothing.stdout.len()),
            (Some(0), 0),
            "{args:?}"
        );
    }
}

#[test]
fn the_generator_prints_what_is_made_of_the_normal_entries_and_never_fails() {
    let grub_d = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = grub_d.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
        path
    };
    let run = |program: &str| {
        let hook = write(HOOKS[2], &with_program(HOOKS[2], program));
        let output = Command::new("sh").arg(hook).output().expect("sh");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let reader = write("reader", "#!/bin/sh\nexec cat\n");
    let reader = reader.to_str().expect("a path");
    assert_eq!(
        run(reader),
        "",
        "without 10_linux there is nothing to be made of"
    );
    write(
        "10_linux",
        "#!/bin/sh\necho \"menuentry 'x' { }\"\necho noise >&2\n",
    );
    assert_eq!(run(reader), "menuentry 'x' { }\n");
    assert_eq!(run("/bin/false"), "");
}
