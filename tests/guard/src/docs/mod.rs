//! The commands in the documentation, as something that can be run: blocks marked `console`, in which a line that begins
//! with `$ ` is typed and the lines below are what it says.

mod said;
mod shell;

use std::ops::Range;

use anyhow::{Result, bail, ensure};

pub use said::compare;
pub use shell::Shell;

/// Right above a block: why its commands cannot be run in a session of the testbed.
const NOT_RUN: &str = "<!-- not run: ";
/// At the end of a command: that it ends with this status.
const STATUS: &str = "# status ";

/// A command with what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Where it is: the line's number.
    pub line: usize,
    /// What is typed.
    pub command: String,
    /// How it ends.
    pub status: i32,
    /// What it says, as the page has it.
    pub says: String,
}

/// The commands of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// To be run, in this order.
    pub examples: Vec<Example>,
    /// Not run, each with the reason.
    pub not_run: Vec<(usize, String)>,
}

/// Reads a page.
///
/// # Errors
/// A block of shell commands that is neither run nor says why not: an example that nobody tries is wrong one day.
pub fn read(page: &str) -> Result<Page> {
    let lines: Vec<&str> = page.lines().collect();
    let mut read = Page::default();
    let mut at = 0;
    while at < lines.len() {
        let Some(kind) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let begin = at + 1;
        let length = lines[begin..]
            .iter()
            .position(|line| line.trim_end() == "```");
        let Some(length) = length else {
            bail!("line {}: the block never ends", at + 1);
        };
        let reason = at
            .checked_sub(1)
            .and_then(|above| lines[above].strip_prefix(NOT_RUN))
            .and_then(|text| text.strip_suffix(" -->"));
        block(
            &lines,
            begin..begin + length,
            kind.trim(),
            reason,
            &mut read,
        )?;
        at = begin + length + 1;
    }
    Ok(read)
}

fn block(
    lines: &[&str],
    range: Range<usize>,
    kind: &str,
    reason: Option<&str>,
    page: &mut Page,
) -> Result<()> {
    let first = range.start;
    match (kind, reason) {
        ("console", None) => examples(lines, range, &mut page.examples),
        ("console" | "sh" | "bash", Some(reason)) => {
            ensure!(reason.len() > 10, "line {first}: {reason:?} is no reason");
            let commands = lines[range].iter().filter(|line| {
                !line.trim().is_empty() && (kind != "console" || line.starts_with("$ "))
            });
            page.not_run
                .extend(commands.map(|_| (first, reason.to_owned())));
            Ok(())
        }
        ("sh" | "bash", None) => bail!(
            "line {first}: commands that nobody runs; make it a block `console`, or say `{NOT_RUN}REASON -->` above it"
        ),
        _ => Ok(()),
    }
}

fn examples(lines: &[&str], range: Range<usize>, out: &mut Vec<Example>) -> Result<()> {
    let begin = out.len();
    for number in range {
        let line = lines[number];
        if let Some(typed) = line.strip_prefix("$ ") {
            let (command, status) = match typed.rsplit_once(STATUS) {
                Some((command, status)) => (command.trim_end(), status.trim().parse()?),
                None => (typed, 0),
            };
            out.push(Example {
                line: number + 1,
                command: command.to_owned(),
                status,
                says: String::new(),
            });
        } else if out.len() == begin {
            bail!("line {}: a block `console` begins with `$ `", number + 1);
        } else if let Some(last) = out.last_mut() {
            if let Some(more) = line.strip_prefix("> ")
                && last.says.is_empty()
            {
                last.command.push('\n');
                last.command.push_str(more);
            } else {
                last.says.push_str(line);
                last.says.push('\n');
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_say_are_told_apart() {
        let page = "# Title\n\n```console\n$ a b\none\n\n$ c \\\n> d\n$ e  # status 3\nno\n```\n\
                    <!-- not run: it changes the kernel's settings -->\n```console\n$ f\n$ g\nx\n```\n```toml\na = 1\n```\n";
        let read = read(page).unwrap();
        let short: Vec<_> = read
            .examples
            .iter()
            .map(|example| {
                (
                    example.line,
                    example.command.as_str(),
                    example.status,
                    example.says.as_str(),
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                (4, "a b", 0, "one\n\n"),
                (7, "c \\\nd", 0, ""),
                (9, "e", 3, "no\n")
            ]
        );
        assert_eq!(read.not_run.len(), 2);
        assert_eq!(read.not_run[0].1, "it changes the kernel's settings");
    }

    #[test]
    fn commands_that_nobody_runs_are_a_mistake() {
        for (page, word) in [
            ("```sh\nls\n```\n", "line 1"),
            ("```console\nls\n```\n", "begins with"),
            ("```console\n$ ls\n", "never ends"),
            ("<!-- not run: so -->\n```sh\nls\n```\n", "no reason"),
        ] {
            let error = read(page).unwrap_err().to_string();
            assert!(error.contains(word), "{page:?}: {error}");
        }
    }

    /// So that a page that cannot be read is found before a guest is booted.
    #[test]
    fn every_page_can_be_read() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = vec![root.join("README.md")];
        for entry in std::fs::read_dir(root.join("docs")).unwrap() {
            pages.push(entry.unwrap().path());
        }
        for path in pages {
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                if let Err(error) = read(&text) {
                    panic!("{}: {error}", path.display());
                }
            }
        }
    }
}
