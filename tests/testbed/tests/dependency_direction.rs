//! ARCHITECTURE.md's arrows, checked: who may depend on whom, one version of each dependency that we
//! name, and no clock, file or thread in a pure crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate of ours, and the crates of ours that it may name. A new crate must be entered here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("workload-guard-dbus", &[]),
    ("guard-policy", &[]),
    ("guard-insight", &[]),
    ("guard-files", &["guard-policy"]),
    ("guard-system", &["guard-policy", "workload-guard-dbus"]),
    (
        "workload-guardd",
        &[
            "guard-files",
            "guard-insight",
            "guard-policy",
            "guard-system",
            "workload-guard-dbus",
        ],
    ),
    (
        "workload-guard",
        &[
            "bench-profile",
            "bench-system",
            "guard-files",
            "guard-insight",
            "guard-policy",
            "workload-guard-dbus",
        ],
    ),
    ("bench-profile", &[]),
    ("bench-system", &["bench-profile", "bench-trees"]),
    (
        "bench-prepd",
        &["bench-profile", "bench-system", "workload-guard-dbus"],
    ),
    ("bench-trees", &[]),
    ("testbed", &[]),
    ("guard-scenarios", &["workload-guard-dbus"]),
    ("bench-scenarios", &["bench-trees", "workload-guard-dbus"]),
    (
        "guard-benchmarks",
        &["guard-policy", "guard-system", "workload-guard-dbus"],
    ),
];

/// Crates that decide and touch nothing.
const PURE: &[&str] = &[
    "service/insight/src",
    "service/policy/src",
    "boot/profile/src",
];

/// What a pure crate must not name, outside its tests.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "Instant",
    "SystemTime",
];

/// Crates that it must not use. Their bare names may stand in a text: nix is a package manager, too.
const IMPURE_CRATES: &[&str] = &["zbus", "nix"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is there")
}

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

fn members(metadata: &Value) -> Vec<&Value> {
    let ids: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let packages = metadata["packages"].as_array().expect("a list");
    packages
        .iter()
        .filter(|package| ids.contains(package["id"].as_str().expect("an id")))
        .collect()
}

#[test]
fn crates_depend_only_in_the_drawn_direction() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let metadata = metadata();
    let members = members(&metadata);
    let ours: BTreeSet<&str> = members
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    assert_eq!(
        ours,
        allowed.keys().copied().collect(),
        "the table names each crate of the workspace"
    );
    for package in members {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("a list") {
            let on = dependency["name"].as_str().expect("a name");
            assert!(
                !ours.contains(on) || allowed[name].contains(&on),
                "{name} must not depend on {on}"
            );
        }
    }
}

#[test]
fn each_dependency_that_we_name_has_one_version() {
    let metadata = metadata();
    let named: BTreeSet<&str> = members(&metadata)
        .iter()
        .flat_map(|package| package["dependencies"].as_array().expect("a list"))
        .filter_map(|dependency| dependency["name"].as_str())
        .collect();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("a list") {
        let name = package["name"].as_str().expect("a name");
        if named.contains(name) {
            versions
                .entry(name)
                .or_default()
                .insert(package["version"].as_str().expect("a version"));
        }
    }
    for (name, versions) in versions {
        assert_eq!(
            versions.len(),
            1,
            "{name} is there in several versions: {versions:?}"
        );
    }
}

#[test]
fn pure_crates_touch_nothing() {
    for folder in PURE {
        let mut files = Vec::new();
        rust_files(&root().join(folder), &mut files);
        assert!(!files.is_empty(), "{folder} holds sources");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source");
            let code = text.split("#[cfg(test)]").next().expect("a first part");
            for line in code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                for word in IMPURE {
                    let found = line
                        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                        .any(|token| token == *word || token.starts_with(&format!("{word}::")));
                    assert!(!found, "{} names {word}: {line}", file.display());
                }
                for name in IMPURE_CRATES {
                    let found = line.contains(&format!("{name}::"))
                        || line.contains(&format!("use {name}"));
                    assert!(!found, "{} uses {name}: {line}", file.display());
                }
            }
        }
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
            && !path.components().any(|part| part.as_os_str() == "tests")
        {
            files.push(path);
        }
    }
}
