//! Versions of glibc: a program linked on this machine may need functions that an older guest's library lacks.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// As in `2.36`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0, self.1)
    }
}

/// Debian 12's, the oldest that packages are for.
pub const DEBIAN_12: Version = Version(2, 36);

/// This machine's.
pub fn of_host() -> Result<Version> {
    let text = process::output_of(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    text.trim()
        .strip_prefix("glibc ")
        .and_then(parse)
        .with_context(|| format!("getconf GNU_LIBC_VERSION says {text:?}"))
}

/// A Debian root tree's, from its package database.
pub fn of_tree(tree: &Path) -> Result<Version> {
    let path = tree.join("var/lib/dpkg/status");
    let status = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    in_status(&status).with_context(|| format!("{} has no libc6 with a version", path.display()))
}

/// The newest that a program asks for; none when it has its own built in.
///
/// A program that is linked dynamically names its interpreter, and the versions of the symbols that it needs.
pub fn needed_by(program: &[u8]) -> Option<Version> {
    const VERSION: &[u8] = b"\0GLIBC_";
    if !program.windows(8).any(|window| window == b"ld-linux") {
        return None;
    }
    program
        .windows(VERSION.len())
        .enumerate()
        .filter(|(_, window)| *window == VERSION)
        .filter_map(|(at, _)| {
            let text = &program[at + VERSION.len()..];
            let end = text.iter().position(|&byte| byte == 0)?;
            parse(std::str::from_utf8(&text[..end]).ok()?)
        })
        .max()
}

fn in_status(status: &str) -> Option<Version> {
    status
        .split("\n\n")
        .find(|paragraph| paragraph.lines().any(|line| line == "Package: libc6"))?
        .lines()
        .find_map(|line| line.strip_prefix("Version: "))
        .and_then(parse)
}

/// The first two numbers of a version such as `2.36-9+deb12u14`.
fn parse(text: &str) -> Option<Version> {
    let mut numbers = text
        .split(|character: char| !character.is_ascii_digit())
        .map(str::parse::<u32>);
    Some(Version(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(parse("2.9").unwrap() < parse("2.36-9+deb12u14").unwrap());
        assert!(parse("2.36").unwrap() < parse("2.41-12").unwrap());
        assert_eq!(parse("2.36-9+deb12u14"), parse("2.36"));
        assert_eq!(parse("two"), None);
    }

    #[test]
    fn the_package_is_found_among_others() {
        let status = "Package: libc6-dev\nVersion: 9.9-1\n\nPackage: libc6\nStatus: install ok installed\n\
                      Version: 2.41-12+deb13u5\n\nPackage: x\nVersion: 1\n";
        assert_eq!(in_status(status).unwrap().to_string(), "2.41");
        assert_eq!(in_status("Package: x\nVersion: 1\n"), None);
    }

    #[test]
    fn what_a_program_needs_is_read_from_its_symbols() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needed = needed_by(&this).expect("tests are linked dynamically");
        assert!(needed >= Version(2, 17) && needed <= of_host().unwrap());
        assert_eq!(needed_by(b"\x7fELF\0GLIBC_2.5\0"), None);
        let old = b"/lib64/ld-linux-x86-64.so.2\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_PRIVATE\0";
        assert_eq!(needed_by(old), Some(Version(2, 34)));
    }

    #[test]
    fn this_machine_has_one() {
        assert!(of_host().unwrap() >= Version(2, 17));
    }
}
