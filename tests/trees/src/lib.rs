//! Trees of `/sys` and `/proc` that stand in for a machine in tests.
//!
//! A tree is a text, `PATH: VALUE` a line; `#` starts a comment, and the first comment says whether the
//! tree was recorded or made up. `{0-3,8}` in a path stands for each of those numbers; in the value `{}`
//! is that number, `{+16}` and `{-16}` are others counted from it. `\n` in a value is a line break; every
//! file ends in one, as sysfs has it, but for a value `-`, which is an empty file. `PATH -> TARGET` makes
//! a symbolic link.

use std::io;
use std::path::Path;

/// One tree on top of what every kernel of a desktop shows.
macro_rules! on_a_desktop {
    ($tree:literal) => {
        concat!(include_str!($tree), include_str!("../knobs/kernel.tree"))
    };
}

/// The topologies: name and text.
pub const TOPOLOGIES: [(&str, &str); 7] = [
    (
        "ryzen-9950x",
        include_str!("../topologies/ryzen-9950x.tree"),
    ),
    (
        "ryzen-7950x3d",
        include_str!("../topologies/ryzen-7950x3d.tree"),
    ),
    (
        "intel-single-l3",
        include_str!("../topologies/intel-single-l3.tree"),
    ),
    (
        "intel-hybrid",
        include_str!("../topologies/intel-hybrid.tree"),
    ),
    ("two-socket", include_str!("../topologies/two-socket.tree")),
    ("arm-no-smt", include_str!("../topologies/arm-no-smt.tree")),
    ("vm-2-cpus", include_str!("../topologies/vm-2-cpus.tree")),
];

/// Ways in which a machine's clocks are driven: name and text.
pub const KNOBS: [(&str, &str); 5] = [
    ("intel-pstate", on_a_desktop!("../knobs/intel-pstate.tree")),
    ("acpi-cpufreq", on_a_desktop!("../knobs/acpi-cpufreq.tree")),
    (
        "amd-pstate-epp-6.10",
        on_a_desktop!("../knobs/amd-pstate-epp-6.10.tree"),
    ),
    (
        "amd-pstate-epp-6.11",
        on_a_desktop!("../knobs/amd-pstate-epp-6.11.tree"),
    ),
    ("no-cpufreq", include_str!("../knobs/no-cpufreq.tree")),
];

/// A topology's text.
///
/// # Panics
///
/// There is none of that name.
pub fn topology(name: &str) -> &'static str {
    TOPOLOGIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .unwrap_or_else(|| panic!("no topology is called {name}"))
}

/// Writes the files of `text` below `folder`; a later tree overrides files of an earlier one.
///
/// # Errors
///
/// A file cannot be written.
///
/// # Panics
///
/// A line is none.
pub fn expand(text: &str, folder: &Path) -> io::Result<()> {
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (path, value, link) = match (line.split_once(" -> "), line.split_once(": ")) {
            (Some((path, target)), _) => (path, target, true),
            (None, Some((path, value))) => (path, value, false),
            (None, None) => panic!("line {}: no `PATH: VALUE` in {line:?}", n + 1),
        };
        for (path, value) in each(path, value) {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent)?;
            if link {
                std::os::unix::fs::symlink(&value, &path)?;
            } else {
                std::fs::write(&path, contents(&value))?;
            }
        }
    }
    Ok(())
}

fn contents(value: &str) -> String {
    match value {
        "-" => String::new(),
        value => value.replace("\\n", "\n") + "\n",
    }
}

/// The files that one line means.
fn each(path: &str, value: &str) -> Vec<(String, String)> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![(path.to_owned(), value.to_owned())];
    };
    let (numbers, after) = rest.split_once('}').expect("a `}` for each `{`");
    numbers
        .split(',')
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<i64>().expect("a number between { and }");
            number(first)..=number(last)
        })
        .map(|n| {
            (
                format!("{before}{n}{}", after.replace("{}", &n.to_string())),
                counted(value, n),
            )
        })
        .collect()
}

fn counted(value: &str, n: i64) -> String {
    let mut parts = value.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (offset, rest) = part.split_once('}').expect("a `}` for each `{`");
        let offset: i64 = match offset {
            "" => 0,
            offset => offset.parse().expect("a number between { and }"),
        };
        text.push_str(&format!("{}{rest}", n + offset));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_for_many_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "# a comment\na{0-1,4}/b{}: {},{+16}\\nx\nc: -\nd -> a0/b0\n";
        expand(text, folder.path()).expect("it is written");
        let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).expect(path);
        assert_eq!(read("a4/b4"), "4,20\nx\n");
        assert_eq!(read("c"), "");
        assert_eq!(read("d"), "0,16\nx\n");
    }

    #[test]
    fn each_tree_says_where_it_comes_from() {
        for (name, text) in TOPOLOGIES.into_iter().chain(KNOBS) {
            let first = text.lines().next().unwrap_or_default();
            assert!(
                first.starts_with("# RECORDED") || first.starts_with("# MADE UP"),
                "{name}: {first}"
            );
        }
    }
}
