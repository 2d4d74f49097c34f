//! Builds a root tree with mmdebstrap: as root directly, as an ordinary user in a user namespace.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::recipe::Recipe;
use crate::host;
use crate::process::{self, Ended, shell_status};
use crate::progress;

/// A slow mirror takes minutes; what takes longer than this does not end.
const DEADLINE: Duration = Duration::from_secs(20 * 60);

/// How much of mmdebstrap's output an error shows.
const ERROR_LINES: usize = 40;

/// Builds `recipe` into `target`, which must not exist.
pub fn build(recipe: &Recipe, mirror: &str, target: &Path) -> Result<()> {
    let begin = Instant::now();
    progress::say(&format!(
        "image {}: building from {mirror}, suite {} (once; cached afterwards)",
        recipe.name, recipe.suite
    ));
    let mut command = Command::new("mmdebstrap");
    command.args(arguments(recipe, host::is_root())).arg(target);
    // Both are read by packages' scripts.
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8");
    for mirror_line in source_lines(recipe, mirror) {
        command.arg(mirror_line);
    }
    let mut output = LineSink::new(recipe.name);
    let ended = process::stream(command, DEADLINE, &mut |bytes| output.feed(bytes))?;
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
            output.tail()
        ),
        Ended::TimedOut => bail!(
            "mmdebstrap did not finish the image {} within {} minutes; its last lines:\n{}",
            recipe.name,
            DEADLINE.as_secs() / 60,
            output.tail()
        ),
    }
}

/// mmdebstrap's options and suite, without the target and the mirror lines that follow it.
fn arguments(recipe: &Recipe, root: bool) -> Vec<String> {
    let mut arguments: Vec<String> = vec![
        format!("--mode={}", if root { "root" } else { "unshare" }),
        "--variant=minbase".into(),
        "--format=directory".into(),
        r#"--aptopt=APT::Install-Recommends "false""#.into(),
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
    if host::is_root() {
        std::fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
    } else {
        process::output_of(
            Command::new("mmdebstrap")
                .args(["--unshare-helper", "rm", "-rf", "--"])
                .arg(path),
        )
        .map(drop)
    }
}

/// Shows mmdebstrap's steps as they come and keeps the last lines for an error.
struct LineSink {
    image: &'static str,
    pending: Vec<u8>,
    last: VecDeque<String>,
}

impl LineSink {
    fn new(image: &'static str) -> Self {
        Self {
            image,
            pending: Vec::new(),
            last: VecDeque::new(),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // mmdebstrap redraws its progress bar with carriage returns.
            if byte == b'\n' || byte == b'\r' {
                let line = String::from_utf8_lossy(&self.pending).trim().to_owned();
                self.pending.clear();
                self.line(line);
            } else {
                self.pending.push(byte);
            }
        }
    }

    fn line(&mut self, line: String) {
        if line.is_empty() {
            return;
        }
        match line.strip_prefix("I: ") {
            // Hooks are shown by mmdebstrap with their whole text.
            Some(step) if step.starts_with("running --customize-hook") => {
                progress::say(&format!("image {}: setting up", self.image));
            }
            Some(step) if step.ends_with("...") => {
                progress::say(&format!("image {}: {step}", self.image))
            }
            _ => progress::hint(&format!("image {}: {line:.100}", self.image)),
        }
        if self.last.len() == ERROR_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn tail(&self) -> String {
        let mut lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        let pending = String::from_utf8_lossy(&self.pending);
        lines.push(&pending);
        lines.join("\n")
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

    #[test]
    fn the_last_lines_are_kept_for_the_error() {
        let mut sink = LineSink::new("x");
        for number in 0..100 {
            sink.feed(format!("line {number}\r\n").as_bytes());
        }
        sink.feed(b"no newline");
        let tail = sink.tail();
        assert!(
            !tail.contains("line 59\n")
                && tail.contains("line 60\n")
                && tail.ends_with("no newline")
        );
    }
}
