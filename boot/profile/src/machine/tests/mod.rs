mod import;

use super::{Machine, MachineFile, Switches};
use crate::profile::Profile;

const SHIPPED: &str = include_str!("../../../../../config/machine.toml");

fn parse(text: &str) -> Result<Machine, String> {
    MachineFile::parse("machine.toml", text)
        .map(|file| file.machine)
        .map_err(|mistakes| mistakes.to_string())
}

/// A correct file, with `[cpus]` on line 1 and one key a line after it.
fn with(changes: &[(&str, &str)]) -> String {
    let mut keys = vec![
        ("bench", "\"4-7\""),
        ("housekeeping", "\"0-3\""),
        ("single_core", "4"),
        ("parked", "\"1-3\""),
        ("expected_online", "\"0-7\""),
    ];
    for (key, value) in changes {
        match keys.iter_mut().find(|(known, _)| known == key) {
            Some(known) => known.1 = value,
            None => keys.push((key, value)),
        }
    }
    let line = |(key, value): &(&str, &str)| format!("{key} = {value}\n");
    "[cpus]\n".to_owned() + &keys.iter().map(line).collect::<String>()
}

#[test]
fn the_shipped_file_is_the_9950x() {
    let machine = parse(SHIPPED).expect("it is correct");
    assert_eq!(machine.cpus.bench.to_mask(), "ff00");
    assert_eq!(machine.cpus.housekeeping.to_mask(), "ff");
    assert_eq!(machine.cpus.single_core, 8);
    assert_eq!(machine.cpus.parked.to_string(), "1-7");
    assert_eq!(machine.cpus.expected_online.to_string(), "0-15");
    assert_eq!(machine.cpus.kept().to_string(), "0");
    assert_eq!(machine.canary_divisor, 2);
    for profile in Profile::ALL {
        assert_eq!(machine.switches(profile), Switches::default_of(profile));
    }
}

#[test]
fn each_contradiction_names_line_key_reason_and_way_out() {
    for (changes, expected) in [
        (
            vec![("housekeeping", "\"0-4\""), ("expected_online", "\"0-7\"")],
            "machine.toml:3: `cpus.housekeeping`: CPU 4 is in `cpus.bench` too; take it out of one of the two",
        ),
        (
            vec![("single_core", "3")],
            "machine.toml:4: `cpus.single_core`: CPU 3 is not in `cpus.bench` (4-7); choose one of those",
        ),
        (
            vec![("parked", "\"0\"")],
            "machine.toml:5: `cpus.parked`: CPU 0 cannot be taken offline; leave it out",
        ),
        (
            vec![("parked", "\"3-5\"")],
            "machine.toml:5: `cpus.parked`: CPU 4-5 is not in `cpus.housekeeping` (0-3); park housekeeping CPUs only",
        ),
        (
            vec![("bench", "\"0,4-7\""), ("housekeeping", "\"1-3\"")],
            "machine.toml:3: `cpus.housekeeping`: no housekeeping CPU is left beside `cpus.parked`; keep at least one, cpu0 as a rule",
        ),
        (
            vec![("expected_online", "\"0-6\"")],
            "machine.toml:6: `cpus.expected_online`: it lacks CPU 7, which `cpus.bench` or `cpus.housekeeping` names; add it, or take it out there",
        ),
        (
            vec![("expected_online", "\"0-9\"")],
            "machine.toml:6: `cpus.expected_online`: CPU 8-9 is in neither `cpus.bench` nor `cpus.housekeeping`; give it to housekeeping",
        ),
    ] {
        assert_eq!(parse(&with(&changes)), Err(expected.to_owned()));
    }
}

#[test]
fn each_value_that_is_none_says_what_it_should_be() {
    for (key, value, expected) in [
        (
            "bench",
            "\"7-4\"",
            "machine.toml:2: `cpus.bench`: \"7-4\" is no CPU and no range of CPUs such as 0-7; write a list such as \"8-15\" or \"0-3,8\"",
        ),
        (
            "bench",
            "4",
            "machine.toml:2: `cpus.bench`: it must be a CPU list in quotes, such as \"8-15\", not 4",
        ),
        (
            "single_core",
            "9000",
            "machine.toml:4: `cpus.single_core`: it must be a whole number from 0 to 8191, not 9000",
        ),
        (
            "single_core",
            "\"4\"",
            "machine.toml:4: `cpus.single_core`: it must be a whole number from 0 to 8191, not \"4\"",
        ),
        (
            "single_cpu",
            "4",
            "machine.toml:7: `cpus.single_cpu`: there is no such key; take it out",
        ),
        (
            "\"a\\u001Bb\"",
            "4",
            "machine.toml:7: `cpus.\"a\\u{1b}b\"`: there is no such key; take it out",
        ),
        (
            "Single-Core",
            "4",
            "machine.toml:7: `cpus.Single-Core`: there is no such key; did you mean `cpus.single_core`?",
        ),
    ] {
        assert_eq!(parse(&with(&[(key, value)])), Err(expected.to_owned()));
    }
    for (rest, expected) in [
        (
            "[units]\nmasked = [\"cups\"]",
            "machine.toml:8: `units.masked`: \"cups\" is no unit's full name; write one such as \"cups.service\", with its ending",
        ),
        (
            "[units]\nmasked = [\"a b.service\"]",
            "machine.toml:8: `units.masked`: \"a b.service\" is no unit's full name; write one such as \"cups.service\", with its ending",
        ),
        (
            "[boot]\nkernel_entry_match = \"a\\nb\"",
            "machine.toml:8: `boot.kernel_entry_match`: it holds '\\n'; write one line of plain text",
        ),
        (
            "[canary]\ndivisor = 0",
            "machine.toml:8: `canary.divisor`: it must be a whole number from 1 to 8192, not 0",
        ),
        (
            "[profiles.multi-core]\nboost = \"off\"",
            "machine.toml:8: `profiles.multi-core.boost`: it must be true or false, without quotes, not \"off\"",
        ),
        (
            "[profiles]\n\"multi-core.boost\" = true",
            "machine.toml:8: `profiles.\"multi-core.boost\"`: there is no such key; did you mean `profiles.multi-core.boost`?",
        ),
        (
            "[profiles.multicore]\nboost = true",
            "machine.toml:8: `profiles.multicore.boost`: there is no such key; did you mean `profiles.multi-core.boost`?",
        ),
    ] {
        assert_eq!(parse(&(with(&[]) + rest)), Err(expected.to_owned()));
    }
}

#[test]
fn every_mistake_is_told_in_the_order_of_the_lines() {
    let text = with(&[("bench", "\"x\""), ("parked", "1")]) + "[canary]\ndivisor = 0\n";
    let error = parse(&text).expect_err("three mistakes");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    for (line, start) in lines
        .iter()
        .zip(["machine.toml:2", "machine.toml:5", "machine.toml:8"])
    {
        assert!(line.starts_with(start), "{error}");
    }
}

#[test]
fn what_is_missing_and_what_is_no_toml() {
    let error = parse("[cpus]\nbench = \"1\"\n").expect_err("it lacks keys");
    assert!(
        error.contains("machine.toml: `cpus.single_core`: the file lacks it"),
        "{error}"
    );
    let error = parse("[cpus]\nbench = \n").expect_err("no TOML");
    assert!(
        error.starts_with("machine.toml:2: this is no TOML: "),
        "{error}"
    );
}

#[test]
fn a_key_of_many_parts_does_not_exhaust_the_stack() {
    for text in [
        format!("a{} = 1\n", ".a".repeat(100_000)),
        format!("[a{}]\n", ".a".repeat(100_000)),
        format!("a = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000)),
    ] {
        parse(&text).expect_err("no machine file");
    }
}
