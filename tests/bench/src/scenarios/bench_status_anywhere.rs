//! The report ends with 0 wherever it runs and knows no failure; the assertion ends with 1 and the reasons off its
//! profile; an unknown argument ends with 2.

use std::os::unix::fs::symlink;

use anyhow::{Context, ensure};

use super::{ANY, Scenario};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{CLI, bench, ended_with, said};
use crate::harness::user;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-status-anywhere",
    tiers: ANY,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    boots: &[run],
};

/// As `workload-guard bench status`, where there is neither sysfs nor most of procfs.
const WITHOUT_SYSFS: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /sys && exec /opt/workload-guard/workload-guard bench status",
];

/// The names of the tools that this replaces are links to it.
fn the_older_tools_names() -> Verdict {
    let folder = tempfile::tempdir()?;
    for (name, args, status) in [
        ("bench-profile-status", &[][..], 0),
        ("bench-profile-status", &["expect-multi-core"], 1),
        ("bench-profile-status", &["multi-core"], 2),
        ("bench-profile-run", &["true"], 1),
        ("bench-prep", &["--boost=maybe"], 2),
        // No service is installed here.
        ("bench-prep", &[], 69),
    ] {
        let link = folder.path().join(name);
        if !link.exists() {
            symlink(CLI, &link)?;
        }
        let mut argv = vec![link.to_str().context("a path")?];
        argv.extend(args);
        ended_with(&command::run(&argv)?, status, &command::line(&argv))?;
    }
    step("the older tools' names stand for it");
    Ok(())
}

fn run() -> Verdict {
    for (who, report) in [
        ("root", bench(&["status"])?),
        ("an ordinary user", user::run(&[CLI, "bench", "status"])?),
        ("root without sysfs", command::run(&WITHOUT_SYSFS)?),
    ] {
        ended_with(&report, 0, &format!("the report of {who}"))?;
        said(&report, "observed environment")?;
        said(&report, "  WARN   profile: a normal boot")?;
        ensure!(!report.said().contains("FAIL"), "{who}: {}", report.said());
        step(format_args!("{who}: status 0"));
    }
    let json = bench(&["status", "--json"])?;
    let value: serde_json::Value = serde_json::from_str(&json.stdout)?;
    ensure!(value["booted"].is_null() && value["ok"] == false, "{value}");

    for line in [&["status", "--expect", "multi-core"], &["status", "--json", "expect-multi-core"]] {
        let off = bench(line)?;
        ended_with(&off, 1, "an assertion off its profile")?;
        said(&off, "a normal boot, not multi-core")?;
        said(&off, "/etc/bench-profile/machine.toml is not there")?;
    }
    for line in [&["status", "expect-turbo"][..], &["status", "--frob"], &["frob"]] {
        ended_with(&bench(line)?, 2, "an unknown argument")?;
    }
    the_older_tools_names()?;
    let refused = bench(&["run", "true"])?;
    ended_with(&refused, 1, "a run on a normal boot")?;
    said(&refused, "this boot is in no benchmark profile")?;
    ended_with(&bench(&["which"])?, 1, "which on a normal boot")?;
    Ok(())
}
