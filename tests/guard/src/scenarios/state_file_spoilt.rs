//! The routes file is lost, or is not what the guard wrote: the workloads are taken over all the same.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::chaos::killer::start_limits_off;
use crate::harness::guard::{FAST, Guard};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{Session, UID};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "state-file-spoilt",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

/// What happens to the file while the guard is away.
type Fault = (&'static str, fn(&Path) -> Result<()>);

const FAULTS: &[Fault] = &[
    ("lost", |path| Ok(fs::remove_file(path)?)),
    ("truncated", |path| {
        let text = fs::read(path)?;
        Ok(fs::write(path, &text[..text.len() / 2])?)
    }),
    ("empty", |path| Ok(fs::write(path, "")?)),
    ("not JSON", |path| Ok(fs::write(path, b"\xff\0{")?)),
    ("other JSON", |path| Ok(fs::write(path, "[1, {\"a\": null}]")?)),
    ("of another version", |path| {
        Ok(fs::write(path, "{\"version\": 99, \"routes\": {}}")?)
    }),
    ("a record spoilt", |path| {
        let text = fs::read_to_string(path)?;
        Ok(fs::write(path, text.replacen("lwg-", "dbus-", 1))?)
    }),
    ("huge", |path| {
        let file = fs::OpenOptions::new().write(true).open(path)?;
        Ok(file.set_len(1 << 30)?)
    }),
    ("writable by others", |path| {
        Ok(fs::set_permissions(path, Permissions::from_mode(0o666))?)
    }),
    ("unreadable", |path| {
        Ok(fs::set_permissions(path, Permissions::from_mode(0o000))?)
    }),
    ("somebody else's", |path| {
        root::ok(&["chown", "root:root", &path.to_string_lossy()]).map(|_| ())
    }),
    ("a link", |path| {
        let aside = path.with_extension("elsewhere");
        fs::rename(path, &aside)?;
        Ok(symlink(aside, path)?)
    }),
    ("a FIFO", |path| {
        fs::remove_file(path)?;
        Ok(mkfifo(path, Mode::S_IRWXU)?)
    }),
    ("a folder", |path| {
        fs::remove_file(path)?;
        Ok(fs::create_dir(path)?)
    }),
    ("a FIFO where the new one is written", |path| {
        Ok(mkfifo(&path.with_extension("json.new"), Mode::S_IRWXU)?)
    }),
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    start_limits_off()?;
    let path = home::state_dir().join("routes.json");
    let load = load(&["spin", "--idle"])
        .description("the work of the user")
        .start()?;
    for (what, spoil) in FAULTS {
        let routed = guard.routed_by_load(load.pid)?;
        until_true("the route is saved", PATIENCE, || {
            Ok(fs::read_to_string(&path)?.contains(&routed.destination))
        })?;
        units::systemctl(&["stop", GUARD_UNIT])?;
        spoil(&path).with_context(|| format!("spoiling: {what}"))?;
        guard.start()?;
        let now = load.now_in()?;
        ensure!(now == routed.destination, "{what}: it was moved to {now}");
        let row = guard.workload_of(load.pid)?;
        ensure!(
            row.as_ref().is_some_and(|row| row.control_group == now),
            "{what}: it is listed as {row:?}"
        );
        let recovered = guard.recovered_when_idle(load.pid)?;
        ensure!(
            recovered.exact && recovered.destination == load.cgroup,
            "{what}: {recovered:?}"
        );
        let words = units::property(&load.unit, "Description")?;
        ensure!(
            words == "the work of the user",
            "{what}: the unit made again is described as {words:?}"
        );
        until_true("the file is good again", PATIENCE, || {
            let meta = fs::symlink_metadata(&path)?;
            ensure!(
                meta.is_file() && meta.uid() == UID && meta.mode() & 0o777 == 0o600,
                "{what}: {meta:?}"
            );
            Ok(true)
        })?;
        step(format_args!("{what}: taken over and brought back exactly"));
    }
    units::no_scope_of_ours_left(session, PATIENCE)
}
