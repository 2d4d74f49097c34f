//! The command line against a real bus with a guard and a systemd that only record.

mod days;
mod support;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Bus, FakeGuard, FakeSystemd, run};
use workload_guard_dbus::GuardError;

#[test]
fn the_command_takes_the_place_of_protect() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let script = "echo $0 $1; echo aside >&2; exit 7";
    let (status, out, err) = run(bus
        .cli()
        .args(["protect", "sh", "-c", script, "a", "--json"]));
    assert_eq!(
        (status, out.as_str(), err.as_str()),
        (7, "a --json\n", "aside\n")
    );
    assert_eq!(
        guard.calls(),
        ["attach [0] protected workload-guard protect"]
    );
}

#[test]
fn explain_tells_where_and_why() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let (status, out, err) = run(bus.cli().args(["explain", "42"]));
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "process 42: make -j8\nin app.slice/a.scope\ncounting\n\nNo rule names its command.\nIt is hot.\n"
    );
    let (_, out, _) = run(bus.cli().args(["explain", "42", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["verdict"], "counting");
    assert_eq!(value["sentences"][1], "It is hot.");
    assert_eq!(
        (&value["pid"], &value["samples_needed"]),
        (&42.into(), &4.into())
    );
    assert!(value.get("rule").is_none(), "{out}");
    assert_eq!(guard.calls(), ["explain 42", "explain 42"]);
}

#[test]
fn run_workload_is_run_in_the_heavy_class() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let name = bus.dir().join("run-workload");
    symlink(env!("CARGO_BIN_EXE_workload-guard"), &name).unwrap();
    assert_eq!(run(bus.program(&name).args(["echo", "-n", "x"])).1, "x");
    // Without a command: the shell, which ends at once on an empty input.
    assert_eq!(run(bus.program(&name).env("SHELL", "/bin/sh")).0, 0);
    let calls = [
        "attach [0] heavy workload-guard run",
        "attach [0] heavy workload-guard run, a shell",
    ];
    assert_eq!(guard.calls(), calls);
}

#[test]
fn a_command_that_cannot_start_moves_nothing() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let (status, _, err) = run(bus.cli().args(["run", "no-such-command-here"]));
    assert_eq!(status, 127);
    assert!(
        err.contains("no-such-command-here: command not found"),
        "{err}"
    );
    assert_eq!(run(bus.cli().args(["run", "/etc/passwd"])).0, 126);
    assert!(guard.calls().is_empty());
}

#[test]
fn a_refusal_is_told_and_the_command_is_not_run() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, Some(GuardError::OutOfReach("it is root's".into())));
    let mark = bus.dir().join("ran");
    let (status, _, err) = run(bus.cli().args(["run", "touch"]).arg(&mark));
    assert_eq!(
        (status, err.as_str()),
        (77, "workload-guard: it is root's\n")
    );
    assert!(!mark.exists());
    assert_eq!(run(bus.cli().args(["route", "42"])).0, 77);
    assert_eq!(guard.calls()[1], "route 42 heavy");
}

#[test]
fn the_thin_requests_carry_their_arguments() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let attach = [
        "attach",
        "7",
        "8",
        "--class",
        "protected",
        "--reason",
        "my shell",
    ];
    assert_eq!(
        run(bus.cli().args(attach)).1,
        "2 processes and their descendants are in protected\n"
    );
    assert_eq!(
        run(bus.cli().args(["release", "7"])).1,
        "back in /user.slice/a.scope\n"
    );
    assert_eq!(run(bus.cli().arg("reload")).0, 0);
    assert_eq!(
        guard.calls(),
        ["attach [7, 8] protected my shell", "release 7", "reload"]
    );
}

#[test]
fn holds_carry_their_terms() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let lines: [(&[&str], &str); 6] = [
        (
            &["pause", "--for", "30m", "a", "meeting"],
            "hold 5; `workload-guard unhold 5` ends it\n",
        ),
        (
            &["exempt", "42", "--for", "1h 30min"],
            "hold 6; `workload-guard unhold 6` ends it\n",
        ),
        (
            &["pin", "42"],
            "hold 7; `workload-guard unhold 7` ends it\n",
        ),
        (&["unhold", "7"], "ended\n"),
        (&["resume"], "routing goes on\n"),
        (
            &["attach", "42", "--class", "heavy", "--for", "90s"],
            "1 process and its descendants are in heavy\n",
        ),
    ];
    for (line, answer) in lines {
        assert_eq!(run(bus.cli().args(line)).1, answer, "{line:?}");
    }
    assert_eq!(
        guard.calls(),
        [
            "pause a meeting 1800 false",
            "exempt 42 - 5400 false",
            "pin 42 - - false",
            "release-hold 7",
            "resume",
            "attach [42] heavy - leased: - 90 false",
        ]
    );
    let (status, out, _) = run(bus.cli().arg("holds"));
    assert!(status == 0 && out.contains("a meeting"), "{out}");
}

#[test]
fn wrong_settings_are_told_in_the_guards_words() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(
        &bus,
        Some(GuardError::InvalidSettings(
            "guard.toml:2: unknown key".into(),
        )),
    );
    let (status, _, err) = run(bus.cli().arg("reload"));
    assert_eq!(
        (status, err.as_str()),
        (1, "workload-guard: guard.toml:2: unknown key\n")
    );
}

#[test]
fn status_and_config_show_what_the_guard_says() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    let (status, out, _) = run(bus.cli().arg("status"));
    assert_eq!(status, 0);
    for part in [
        "degraded",
        "no cpu controller",
        "ways out",
        "xz -T1",
        "7 routed",
        "app.slice/t.scope",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\x1b'), "no colour off-terminal: {out}");
    let json: serde_json::Value =
        serde_json::from_str(&run(bus.cli().args(["status", "--json"])).1).unwrap();
    assert_eq!(json["workloads"][0]["pid"], 42);
    assert_eq!(json["totals"]["routed"], 7);
    let (_, out, _) = run(bus.cli().arg("stats"));
    assert!(out.contains("is off") && out.contains("git:gc"), "{out}");
    let (_, out, _) = run(bus.cli().arg("config"));
    assert!(
        out.contains("routing.cpu_threshold  70.0   default"),
        "{out}"
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = bus
        .cli()
        .arg("status")
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn without_the_guard_systemd_gives_the_scope() {
    let Some(bus) = Bus::start() else { return };
    let systemd = FakeSystemd::on(&bus, "not-found", "done");
    let (status, out, err) = run(bus.cli().args(["run", "sh", "-c", "echo $$; exit 3"]));
    assert_eq!(status, 3);
    assert!(
        err.contains("not installed") && err.contains("without the guard"),
        "{err}"
    );
    assert!(
        err.contains("heavy-workload.slice has no unit file"),
        "{err}"
    );
    let calls = systemd.calls();
    let pid = out.trim();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(
        calls[0].starts_with(&format!("scope lwg-heavy-placed-{pid}-")),
        "{calls:?}"
    );
    let properties = format!(
        ".scope fail Slice=\"heavy-workload.slice\" Delegate=true CollectMode=\"inactive-or-failed\" SendSIGHUP=true \
         CPUWeight=uint64 100 PIDs=[uint32 {pid}] Description=\"sh -c echo $$; exit 3\""
    );
    assert!(calls[0].ends_with(&properties), "{calls:?}\n{properties}");
}

#[test]
fn a_scope_that_systemd_cannot_start_is_an_error_and_the_command_is_not_run() {
    let Some(bus) = Bus::start() else { return };
    let _systemd = FakeSystemd::on(&bus, "not-found", "failed");
    let mark = bus.dir().join("ran");
    let (status, _, err) = run(bus.cli().args(["protect", "touch"]).arg(&mark));
    assert_eq!(status, 1);
    assert!(err.contains("its job ended: failed"), "{err}");
    assert!(!mark.exists());
}

#[test]
fn a_guard_that_fails_at_start_does_not_make_anyone_wait() {
    let Some(bus) = Bus::start() else { return };
    let systemd = FakeSystemd::on(&bus, "loaded", "failed");
    let (status, _, err) = run(bus.cli().arg("status"));
    assert_eq!(status, 69);
    assert!(
        err.contains("workload-guard.service did not start (its job ended: failed)"),
        "{err}"
    );
    assert_eq!(systemd.calls(), ["start workload-guard.service replace"]);
}

#[test]
fn without_guard_and_systemd_nothing_is_run() {
    let Some(bus) = Bus::start() else { return };
    let mark = bus.dir().join("ran");
    let (status, _, err) = run(bus.cli().args(["run", "touch"]).arg(&mark));
    assert_eq!(status, 69);
    assert!(err.contains("org.freedesktop.systemd1"), "{err}");
    assert!(!mark.exists());
}

#[test]
fn without_a_bus_the_way_out_is_told() {
    let mut cli = Command::new(env!("CARGO_BIN_EXE_workload-guard"));
    cli.arg("status")
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
    let (status, _, err) = run(&mut cli);
    assert_eq!(status, 69);
    let booted = Path::new("/run/systemd/system").is_dir();
    let expected = if booted {
        "/nonexistent/bus"
    } else {
        "not booted with systemd"
    };
    assert!(err.contains(expected), "{err}");
}

#[test]
fn watch_asks_the_guard_and_says_what_it_means() {
    let Some(bus) = Bus::start() else { return };
    let guard = FakeGuard::on(&bus, None);
    let (status, out, _) = run(bus.cli().args(["watch", "app.slice", "x.slice"]));
    assert_eq!(status, 0);
    assert!(out.contains("any terminal of the desktop"), "{out}");
    let (status, out, _) = run(bus.cli().args(["watch", "--remove", "app.slice"]));
    assert_eq!(status, 0);
    assert!(out.contains("no longer watched"), "{out}");
    let (_, out, _) = run(bus.cli().args(["watch", "--list", "--json"]));
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap()[0]["unit"].is_string());
    assert_eq!(
        guard.calls(),
        ["watch app.slice x.slice", "unwatch app.slice"]
    );
}
