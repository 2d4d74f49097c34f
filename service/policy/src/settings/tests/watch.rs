//! What `Watch` and `Unwatch` write, and what they refuse.

use super::super::watch::{Change, change};
use super::super::{Sources, load};
use super::layer;

const PATH: &str = "/home/u/.config/linux-workload-guard/guard.toml.d/50-watch.toml";

fn sources(files: &[(&str, &str)]) -> Sources {
    Sources {
        files: files
            .iter()
            .map(|(origin, text)| layer(origin, text))
            .collect(),
        env: Vec::new(),
    }
}

fn units(list: &[&str]) -> Vec<String> {
    list.iter().map(|unit| (*unit).to_owned()).collect()
}

fn written(sources: &Sources, add: &[&str], remove: &[&str]) -> String {
    match change(sources, PATH, &units(add), &units(remove)) {
        Ok(Change::Write(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn refused(sources: &Sources, add: &[&str], remove: &[&str]) -> String {
    change(sources, PATH, &units(add), &units(remove)).expect_err("refused")
}

#[test]
fn a_unit_is_added_and_the_file_goes_when_it_is_not_needed() {
    let text = written(&Sources::default(), &["app.slice"], &[]);
    assert!(text.starts_with("# Written by"), "{text}");
    let with = sources(&[(PATH, &text)]);
    assert_eq!(
        load(&with).expect("valid").settings.watch.parent_units,
        ["protected-workload.slice", "app.slice"]
    );
    assert_eq!(
        change(&with, PATH, &units(&["app.slice"]), &[]),
        Ok(Change::None)
    );
    assert_eq!(
        change(&with, PATH, &[], &units(&["app.slice"])),
        Ok(Change::Remove)
    );
    let text = written(&with, &[], &["protected-workload.slice"]);
    assert!(text.ends_with("parent_units = [\"app.slice\"]\n"), "{text}");
}

#[test]
fn what_cannot_be_watched_is_refused_and_nothing_is_written() {
    let none = Sources::default();
    assert!(refused(&none, &["app.scope"], &[]).contains("each the name of a slice unit"));
    assert!(refused(&none, &["a\n[x]"], &[]).contains("not the string"));
    assert!(refused(&none, &["heavy.slice"], &[]).contains("routed work would be watched"));
    assert!(refused(&none, &["-.slice"], &[]).contains("cannot both be"));
    assert!(refused(&none, &[], &["app.slice"]).contains("app.slice is not watched"));
    assert!(refused(&none, &[], &["protected-workload.slice"]).contains("at least one"));
    let many: Vec<String> = (0..64).map(|n| format!("a{n}.slice")).collect();
    assert!(
        change(&none, PATH, &many, &[])
            .expect_err("too many")
            .contains("a list of 65")
    );
}

#[test]
fn a_source_that_wins_over_the_drop_in_is_named() {
    let mut variable = Sources::default();
    variable
        .env
        .push(("WORKLOAD_GUARD_PARENT_UNIT".into(), "app.slice".into()));
    assert!(
        refused(&variable, &["work.slice"], &[]).contains("is set by WORKLOAD_GUARD_PARENT_UNIT")
    );
    let later = PATH.replace("50-watch", "90-mine");
    let text = "[watch]\nparent_units = [\"app.slice\"]\n";
    let told = refused(&sources(&[(&later, text)]), &["work.slice"], &[]);
    assert!(told.contains("90-mine.toml:2, which wins over"), "{told}");
    // One that is read before does not.
    let before = PATH.replace("50-watch", "10-mine");
    written(&sources(&[(&before, text)]), &["work.slice"], &[]);
}

#[test]
fn settings_that_are_wrong_already_are_put_right_first() {
    let told = refused(
        &sources(&[("/etc/guard.toml", "[x]\n")]),
        &["app.slice"],
        &[],
    );
    assert!(
        told.contains("put right first: /etc/guard.toml:1: unknown key"),
        "{told}"
    );
}
