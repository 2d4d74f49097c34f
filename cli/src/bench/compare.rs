//! `bench compare`.

use std::path::Path;

use bench_profile::comparability::{self, Comparison, Difference, Item};
use bench_system::root::Root;
use bench_system::status::{Environment, Facts};
use serde::{Deserialize, Serialize};

use super::machine::failed;
use crate::error::CliError;

/// What is read of a report.
#[derive(Deserialize)]
struct Report {
    environment: Vec<Item>,
}

/// The JSON of `bench compare`; its help documents the keys.
#[derive(Serialize)]
struct View<'a> {
    comparable: bool,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Compares a report with another, or with this machine as it is; answers the exit status.
pub fn run(root: &Root, first: &Path, second: Option<&Path>, json: bool) -> Result<u8, CliError> {
    let one = read(first)?;
    let other = match second {
        Some(file) => read(file)?,
        None => Environment::read(root, &Facts::gather(root)).0,
    };
    let comparison = comparability::compare(&one, &other);
    let comparable = comparison.comparable();
    let output = if json {
        crate::render::to_json(&View {
            comparable,
            comparison: &comparison,
        })
    } else {
        text(&comparison)
    };
    crate::print(&output)?;
    Ok(u8::from(!comparable))
}

fn read(file: &Path) -> Result<Vec<Item>, CliError> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| failed(format_args!("{name}: {error}")))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| {
        failed(format_args!(
            "{name}: this is no report of `workload-guard bench status --json`: {error}"
        ))
    })?;
    Ok(report.environment)
}

fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    list(&mut text, "differing", &comparison.differing);
    list(
        &mut text,
        "differing, which bears on no result",
        &comparison.incidental,
    );
    if !comparison.unknown.is_empty() {
        text.push_str(&format!(
            "known to neither: {}\n",
            comparison.unknown.join(", ")
        ));
    }
    text.push_str(if comparison.comparable() {
        "results of the two are comparable\n"
    } else {
        "results of the two are NOT comparable\n"
    });
    text
}

fn list(text: &mut String, heading: &str, differences: &[Difference]) {
    if differences.is_empty() {
        return;
    }
    text.push_str(&format!("{heading}\n"));
    for difference in differences {
        let shown = |value: &Option<String>| match value {
            Some(value) => value.clone(),
            None => "(not in this report)".to_owned(),
        };
        text.push_str(&format!(
            "  {}\n    first   {}\n    second  {}\n",
            difference.name,
            shown(&difference.first),
            shown(&difference.second)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_tree_compares_with_itself_and_not_with_other_microcode() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, microcode: &str| {
            let path = folder.path().join(name);
            let report = serde_json::json!({
                "booted": null,
                "environment": [
                    {"name": "microcode", "value": microcode},
                    {"name": "boost", "value": "unknown"},
                ],
            });
            std::fs::write(&path, report.to_string()).expect("a file");
            path
        };
        let root = Root::new(folder.path());
        let (old, new) = (file("old", "0x1"), file("new", "0x2"));
        assert_eq!(run(&root, &old, Some(&old), false).expect("compared"), 0);
        assert_eq!(run(&root, &old, Some(&new), true).expect("compared"), 1);
        // The tree shows nothing at all.
        assert_eq!(run(&root, &old, None, false).expect("compared"), 1);

        let comparison =
            comparability::compare(&read(&old).expect("read"), &read(&new).expect("read"));
        assert_eq!(
            text(&comparison),
            "differing\n  microcode\n    first   0x1\n    second  0x2\nknown to neither: boost\n\
             results of the two are NOT comparable\n"
        );

        std::fs::write(&old, "observed environment\n").expect("a file");
        let error = read(&old).expect_err("text").to_string();
        assert!(error.contains("--json") && error.contains("old"), "{error}");
    }
}
