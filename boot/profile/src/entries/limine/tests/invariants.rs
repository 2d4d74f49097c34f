//! What holds for every configuration, those of the tests and those that chance makes.

use proptest::prelude::*;

use super::*;

/// A boot entry as a person knows it: titles from the outside in, and everything that Limine reads of it.
fn meaning(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let config = Config::parse(text).expect("it parses");
    let is_ours = |entry: usize| profile_of_title(&config.entries[entry].title).is_some();
    (0..config.entries.len())
        .filter(|entry| !is_ours(*entry))
        .map(|entry| {
            let options = config
                .options(entry)
                .map(|(_, key, value)| (key.to_lowercase(), value.to_owned()))
                .collect();
            (default::path_of(&config, entry), options)
        })
        .collect()
}

/// What must be true of `new`, made of `old`.
fn check(name: &str, old: &str, new: &Generated, kernels: Option<usize>) {
    let text = &new.text;
    let config = Config::parse(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    let ours: Vec<usize> = (0..config.entries.len())
        .filter(|entry| profile_of_title(&config.entries[*entry].title).is_some())
        // Chance makes others that are called so.
        .filter(|entry| {
            machine::command_line(&config, *entry)
                .is_some_and(|line| line.contains("systemd.swap=0"))
        })
        .collect();
    if let Some(kernels) = kernels {
        assert_eq!(ours.len(), 3 * kernels, "{name}: {text}");
    }
    for entry in &ours {
        let title = &config.entries[*entry].title;
        let profile = profile_of_title(title).expect("ours");
        let line = machine::command_line(&config, *entry).expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let count = |start: &str| words.iter().filter(|word| word.starts_with(start)).count();
        assert_eq!(
            count(&format!("bench_profile={profile}")),
            1,
            "{name}: {line}"
        );
        assert_eq!(count("bench_profile="), 1, "{name}: {line}");
        let isolated = usize::from(profile.isolates());
        for key in [
            "nosmt",
            "isolcpus=",
            "nohz_full=",
            "rcu_nocbs=",
            "irqaffinity=",
        ] {
            assert_eq!(count(key), isolated, "{name}: {key} in {line}");
        }
        // The one token that makes the difference.
        let domain = count("isolcpus=domain,");
        assert_eq!(
            domain,
            usize::from(profile == Profile::SingleCore),
            "{name}: {line}"
        );
        assert!(!line.contains("${"), "{name}: {line}");
        assert!(line.len() < crate::command_line::LIMIT, "{name}");
        assert!(
            config.option(*entry, "protocol").is_some(),
            "{name}: {title}"
        );
        assert!(machine::path(&config, *entry).is_some(), "{name}: {title}");
        // No name by which the tool that wrote its kernel would take it for its own.
        assert!(
            !config
                .option(*entry, "comment")
                .expect("one")
                .contains("kernel-id"),
            "{name}"
        );
    }
    // Doing it twice changes nothing.
    let again = generated(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    assert_eq!(&again.text, text, "{name}");
    assert!(
        again.notes.iter().all(|note| !note.contains("taken out")),
        "{name}"
    );
    // Snapshots come after ours in their folder, but where a kernel does.
    let place = |wanted: &str| text.find(wanted);
    if let (Some(block), Some(snapshots)) = (place(BEGIN), place("//Snapshots"))
        && name != "chance"
    {
        assert!(block < snapshots, "{name}: {text}");
    }
    // One kind of line ending.
    if old.contains("\r\n") && !old.replace("\r\n", "").contains('\n') {
        assert!(!text.replace("\r\n", "").contains('\n'), "{name}: {text:?}");
    }
}

/// The entry that boots by default, where a number names it.
fn default_of(text: &str) -> Option<String> {
    let config = Config::parse(text).expect("it parses");
    let number: usize = config.global("default_entry")?.1.parse().ok()?;
    // As a person counts: lines of the menu.
    let rows: Vec<String> = (0..config.entries.len())
        .filter(|entry| {
            config
                .ancestry(*entry)
                .skip(1)
                .all(|folder| config.entries[folder].expanded)
        })
        .filter(|entry| {
            config
                .option(*entry, "if_fw_type")
                .is_none_or(|kind| kind == "UEFI")
        })
        .map(|entry| default::path_of(&config, entry))
        .collect();
    rows.get(number.max(1) - 1).cloned()
}

#[test]
fn every_configuration_keeps_its_meaning_and_gains_the_profiles() {
    for (name, text, kernels) in CONFIGS {
        let new = generated(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(name, text, &new, Some(*kernels));
        // Exceptions are what the file's name says.
        if !["from-a-bench-boot", "first-tool"].contains(name) {
            assert_eq!(meaning(&new.text), meaning(text), "{name}");
        }
        if *name != "dropped-by-tool" {
            assert_eq!(
                default_of(&new.text),
                default_of(text),
                "{name}: {}",
                new.text
            );
        }
        // Every other line is there as it was, in its order.
        let kept: Vec<&str> = new.text.lines().map(str::trim).collect();
        let mut kept = kept.iter();
        for line in text.lines().map(str::trim) {
            let of_ours = line.contains("bench_profile")
                || line.contains("/old/")
                || line.contains("benchmark")
                || line.contains("BENCHMARK")
                || line.contains("isolcpus=domain")
                || line.starts_with("default_entry")
                || [
                    "comment: Benchmark profile",
                    "protocol: linux",
                    "path: boot():/v",
                ]
                .contains(&line)
                || line == "comment: kernel-id=linux-cachyos";
            if !of_ours && !is_filler(line) {
                assert!(
                    kept.any(|known| *known == line),
                    "{name}: {line:?} is gone: {}",
                    new.text
                );
            }
        }
    }
}

#[test]
fn the_default_is_kept_wherever_it_is() {
    for (name, text, _) in CONFIGS {
        let Ok(config) = Config::parse(text) else {
            panic!("{name}")
        };
        if config.global("default_entry").is_none() || *name == "dropped-by-tool" {
            continue;
        }
        for row in 0..12 {
            let line = config.global("default_entry").expect("one").0;
            let mut lines: Vec<String> = config
                .lines
                .iter()
                .map(|line| line.raw.to_owned())
                .collect();
            lines[line] = format!("default_entry: {row}\n");
            let text = lines.concat();
            let new = generated(&text).expect("entries").text;
            let (old, now) = (default_of(&text), default_of(&new));
            // One of ours goes only with its kernel.
            assert_eq!(now, old, "{name}, row {row}: {new}");
            if old.is_none() {
                assert_eq!(default_of(&new), None, "{name}, row {row}: {new}");
            }
            // And a tool that drops our block without the comment's note changes nothing more.
            let stripped = without_block(&new);
            let again = generated(&stripped).expect("entries").text;
            if old
                .as_deref()
                .is_some_and(|old| profile_of_title(old).is_none())
            {
                assert_eq!(default_of(&again), old, "{name}, row {row}: {again}");
            }
        }
    }
}

/// As a tool leaves it that writes its entries anew and keeps the head of the file.
fn without_block(text: &str) -> String {
    let mut inside = false;
    text.split_inclusive('\n')
        .filter(|line| {
            inside |= line.trim() == BEGIN;
            let keep = !inside;
            inside &= line.trim() != END;
            keep
        })
        .collect()
}

/// Lines that a configuration can be made of, good and bad.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("/+CachyOS".to_owned()),
        Just("//linux-cachyos".to_owned()),
        Just("//+Kernels".to_owned()),
        Just("///linux-cachyos-lts".to_owned()),
        Just("//Snapshots".to_owned()),
        Just("/linux-cachyos".to_owned()),
        Just("/linux-cachyos benchmark unlimited".to_owned()),
        Just("//linux-cachyos benchmark".to_owned()),
        Just(format!("comment: machine-id={ID}")),
        Just("comment: machine-id=ffffffffffffffffffffffffffffffff".to_owned()),
        Just("protocol: linux".to_owned()),
        Just("protocol: efi".to_owned()),
        Just("path: boot():/EFI/Linux/linux-cachyos.efi".to_owned()),
        Just("path: boot():/vmlinuz-linux-cachyos".to_owned()),
        Just("module_path: boot():/initramfs".to_owned()),
        Just("cmdline: root=UUID=1 bench_profile=unlimited isolcpus=1".to_owned()),
        Just("cmdline: root=UUID=1 \"quoted".to_owned()),
        Just("kernel_cmdline: ${A} -- single".to_owned()),
        Just("${A}=root=UUID=3".to_owned()),
        Just("${A}".to_owned()),
        Just("${".to_owned()),
        Just(BEGIN.to_owned()),
        Just(END.to_owned()),
        Just("# bench-profile: default_entry without 2, with 5 (x)".to_owned()),
        Just("default_entry: 3".to_owned()),
        Just("default_entry: 18446744073709551615".to_owned()),
        Just("if_fw_type: BIOS".to_owned()),
        Just(String::new()),
        "[ -~äß\t\r#/:$\\{\\}=]{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_refused_or_done_once_and_for_all(
        lines in prop::collection::vec((line(), any::<bool>()), 0..40),
    ) {
        let text: String = lines
            .iter()
            .flat_map(|(line, dos)| [line.as_str(), if *dos { "\r\n" } else { "\n" }])
            .collect();
        if let Ok(new) = generated(&text) {
            check("chance", &text, &new, None);
        }
        let _ = benches(&text);
    }
}
