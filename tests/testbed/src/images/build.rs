//! Builds a root tree with mmdebstrap: as root directly, as an ordinary user in a user namespace.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::recipe::{Recipe, Variant};
use crate::host;
use crate::process::{self, Ended, shell_status};
use crate::progress;
use crate::tail::Tail;

/// A slow mirror takes minutes; what takes longer than this does not end.
const DEADLINE: Duration = Duration::from_secs(20 * 60);

/// Builds `recipe` into `target`, which must not exist.
pub fn build(recipe: &Recipe, mirror: &str, target: &Path) -> Result<()> {
    let begin = Instant::now();
    progress::say(&format!(
        "image {}: building from {mirror}, suite {} (once; cached afterwards)",
        recipe.name, recipe.suite
    ));
    let mut command = process::tied("mmdebstrap");
    command.args(arguments(recipe, host::is_root())).arg(target);
    // Our own folder may be closed to the ids that it works with. Both variables are read by packages' scripts.
    command
        .current_dir("/")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8");
    for mirror_line in source_lines(recipe, mirror) {
        command.arg(mirror_line);
    }
    let mut output = Tail::default();
    let ended = process::stream(command, DEADLINE, &mut |bytes| {
        output.feed(bytes, &mut |line| show(recipe.name, line))
    })?;
    progress::clear_hint();
    match ended {
        Ended::Exited(status) if status.success() => {
            progress::say(&format!(
                "image {}: built in {}",
                recipe.name,
                progress::seconds(begin.elapsed())
            ));
            Ok(())
        }
        Ended::Exited(status) => bail!(
            "mmdebstrap could not build the image {} (status {}); its last lines:\n{}",
            recipe.name,
            shell_status(status),
            output.text()
        ),
        Ended::TimedOut => bail!(
            "mmdebstrap did not finish the image {} within {} minutes; its last lines:\n{}",
            recipe.name,
            DEADLINE.as_secs() / 60,
            output.text()
        ),
    }
}

/// mmdebstrap's options and suite, without the target and the mirror lines that follow it.
fn arguments(recipe: &Recipe, root: bool) -> Vec<String> {
    let mut arguments: Vec<String> = vec![
        format!("--mode={}", if root { "root" } else { "unshare" }),
        match recipe.variant {
            Variant::System => "--variant=minbase".into(),
            Variant::Files => "--variant=extract".into(),
        },
        "--format=directory".into(),
        r#"--aptopt=APT::Install-Recommends "false""#.into(),
        r#"--aptopt=Acquire::Retries "3""#.into(),
        // A third of the size, and nothing in a guest reads them.
        "--dpkgopt=path-exclude=/usr/share/man/*".into(),
        "--dpkgopt=path-exclude=/usr/share/doc/*".into(),
        "--dpkgopt=path-exclude=/usr/share/locale/*".into(),
        format!("--include={}", recipe.packages.join(",")),
    ];
    if recipe.suite == "sid" {
        // A mirror that lags serves a Release file that has expired.
        arguments.push(r#"--aptopt=Acquire::Check-Valid-Until "false""#.into());
    }
    arguments.extend(recipe.customize.iter().map(|script| {
        format!(
            "--customize-hook=chroot \"$1\" /bin/sh -euc {}",
            shell_quoted(script)
        )
    }));
    arguments.push(recipe.suite.into());
    arguments
}

/// The `sources.list` lines that mmdebstrap is to use.
fn source_lines(recipe: &Recipe, mirror: &str) -> Vec<String> {
    let mut lines = vec![format!("deb {mirror} {} main", recipe.suite)];
    if recipe.sources {
        lines.push(format!("deb-src {mirror} {} main", recipe.suite));
    }
    lines
}

/// As one word for a POSIX shell.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Removes a tree, also one that belongs to subordinate user ids. A tree that is not there is fine.
pub fn remove_tree(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let cannot = || format!("cannot remove {}", path.display());
    let mounts =
        std::fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
    if let Some(mount) = mount_below(&mounts, path) {
        // Removing would go on in whatever is mounted there, /dev of this machine for one.
        bail!(
            "{}: {mount} is still mounted, by a build that was killed; unmount it first",
            cannot()
        );
    }
    if host::is_root() {
        return std::fs::remove_dir_all(path).with_context(cannot);
    }
    // Its contents belong to the ids that only the namespace has, its name to a folder that only we may write.
    process::output_of(
        Command::new("mmdebstrap")
            .args(["--unshare-helper", "find"])
            .arg(path)
            .args(["-mindepth", "1", "-delete"])
            // Our own folder may be closed to those ids.
            .current_dir("/"),
    )
    .with_context(cannot)?;
    std::fs::remove_dir(path).with_context(cannot)
}

/// A mount point at or below `path`, from the text of /proc/self/mounts.
fn mount_below<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .find(|mount| Path::new(mount).starts_with(path))
}

/// Shows mmdebstrap's steps as they come.
fn show(image: &str, line: &str) {
    match line.strip_prefix("I: ") {
        // Hooks are shown by mmdebstrap with their whole text.
        Some(step) if step.starts_with("running --customize-hook") => {
            progress::say(&format!("image {image}: setting up"));
        }
        Some(step) if step.ends_with("...") => progress::say(&format!("image {image}: {step}")),
        _ => progress::hint(&format!("image {image}: {line:.100}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_suite_packages_and_hooks() {
        let recipe = Recipe::named("trixie").unwrap();
        let arguments = arguments(&recipe, true);
        assert_eq!(arguments[0], "--mode=root");
        assert_eq!(arguments.last().unwrap(), "trixie");
        assert!(
            arguments
                .iter()
                .any(|argument| argument.starts_with("--include=systemd,"))
        );
        let hooks = arguments
            .iter()
            .filter(|argument| argument.starts_with("--customize-hook="))
            .count();
        assert_eq!(hooks, recipe.customize.len());
        assert!(
            !arguments
                .iter()
                .any(|argument| argument.contains("Valid-Until"))
        );
    }

    #[test]
    fn what_is_mounted_below_a_tree_is_found() {
        let mounts = "proc /proc proc rw 0 0\nudev /cache/sid-1.partial/dev devtmpfs rw 0 0\n";
        let found = |path: &str| mount_below(mounts, Path::new(path));
        assert_eq!(
            found("/cache/sid-1.partial"),
            Some("/cache/sid-1.partial/dev")
        );
        assert_eq!(found("/cache/sid-1"), None);
    }

    #[test]
    fn only_recipes_with_sources_get_a_source_line() {
        let lines = |name| source_lines(&Recipe::named(name).unwrap(), "http://m.example/debian");
        assert_eq!(lines("sid"), ["deb http://m.example/debian sid main"]);
        assert_eq!(lines("trixie").len(), 2);
    }

    #[test]
    fn a_quoted_script_survives_a_shell() {
        let text = "it's \"$1\" \\ `x`\nline two";
        let output = Command::new("sh")
            .args(["-c", &format!("printf %s {}", shell_quoted(text))])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
    }
}
