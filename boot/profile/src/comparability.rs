//! Whether two results may be compared, by what was archived of the machine beside each of them.

use serde::{Deserialize, Serialize};

/// One line of what was seen of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is, such as `microcode`.
    pub name: String,
    /// What was seen.
    pub value: String,
}

/// What an item has whose value nobody could see.
pub const UNKNOWN: &str = "unknown";

/// Items that differ without a difference for what is measured: who it was, and when the kernel was built.
const INCIDENTAL: [&str; 2] = ["host", "kernel version"];

/// The item whose words are compared, not its text.
const COMMAND_LINE: &str = "command line";
/// Parameters that name files: where the system is, not what it does.
const FILES: [&str; 4] = ["BOOT_IMAGE=", "initrd=", "root=", "resume="];

/// What two reports say of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// What differs and bears on results; none when they may be compared.
    pub differing: Vec<Difference>,
    /// What differs and does not.
    pub incidental: Vec<Difference>,
    /// What neither knows: it may have differed unseen.
    pub unknown: Vec<String>,
}

/// One item of two values; `None` where a report has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The item.
    pub name: String,
    /// In the first report.
    pub first: Option<String>,
    /// In the second one.
    pub second: Option<String>,
}

impl Comparison {
    /// Whether nothing that bears on results differs.
    pub fn comparable(&self) -> bool {
        self.differing.is_empty()
    }
}

/// Compares two reports. An item that one of them lacks differs: it is of another version, and nobody looked.
pub fn compare(first: &[Item], second: &[Item]) -> Comparison {
    let mut comparison = Comparison::default();
    let of = |items: &[Item], name: &str| {
        let item = items.iter().find(|item| item.name == name);
        item.map(|item| item.value.clone())
    };
    let only_second = second.iter().filter(|item| of(first, &item.name).is_none());
    for Item { name, .. } in first.iter().chain(only_second) {
        let (one, other) = (of(first, name), of(second, name));
        if same(name, one.as_deref(), other.as_deref()) {
            if one.as_deref() == Some(UNKNOWN) {
                comparison.unknown.push(name.clone());
            }
            continue;
        }
        let difference = Difference {
            name: name.clone(),
            first: one,
            second: other,
        };
        if INCIDENTAL.contains(&name.as_str()) {
            comparison.incidental.push(difference);
        } else {
            comparison.differing.push(difference);
        }
    }
    comparison
}

fn same(name: &str, first: Option<&str>, second: Option<&str>) -> bool {
    match (first, second) {
        (Some(first), Some(second)) if name == COMMAND_LINE => words(first) == words(second),
        _ => first == second,
    }
}

/// In their order: the kernel lets the last of two win.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace()
        .filter(|word| !FILES.iter().any(|file| word.starts_with(file)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(items: &[(&str, &str)]) -> Vec<Item> {
        let item = |(name, value): &(&str, &str)| Item {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        items.iter().map(item).collect()
    }

    fn names(differences: &[Difference]) -> Vec<&str> {
        differences
            .iter()
            .map(|difference| difference.name.as_str())
            .collect()
    }

    #[test]
    fn the_same_machine_compares_whatever_it_is_called() {
        let first = report(&[
            ("host", "a"),
            ("kernel", "6.17"),
            (
                "command line",
                "BOOT_IMAGE=/a root=/dev/sda1 nosmt isolcpus=8-15",
            ),
            ("boost", UNKNOWN),
        ]);
        let second = report(&[
            ("host", "b"),
            ("kernel", "6.17"),
            ("command line", "initrd=/b  nosmt isolcpus=8-15"),
            ("boost", UNKNOWN),
        ]);
        let comparison = compare(&first, &second);
        assert!(comparison.comparable(), "{comparison:?}");
        assert_eq!(names(&comparison.incidental), ["host"]);
        assert_eq!(comparison.unknown, ["boost"]);
    }

    #[test]
    fn whatever_bears_on_results_is_named_with_both_values() {
        let first = report(&[
            ("microcode", "0x1"),
            ("mitigations", "on"),
            ("command line", "nosmt quiet"),
            ("boost", "off"),
            ("older", "x"),
        ]);
        let second = report(&[
            ("microcode", "0x2"),
            ("mitigations", "on"),
            ("command line", "quiet"),
            ("boost", UNKNOWN),
            ("newer", "y"),
        ]);
        let comparison = compare(&first, &second);
        assert!(!comparison.comparable());
        assert_eq!(
            names(&comparison.differing),
            ["microcode", "command line", "boost", "older", "newer"]
        );
        assert_eq!(
            comparison.differing[0],
            Difference {
                name: "microcode".to_owned(),
                first: Some("0x1".to_owned()),
                second: Some("0x2".to_owned()),
            }
        );
        assert_eq!(comparison.differing[4].first, None);
        // It is the same from the other side.
        let mirrored = compare(&second, &first);
        assert_eq!(mirrored.differing.len(), comparison.differing.len());
    }
}
