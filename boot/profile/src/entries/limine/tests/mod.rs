use super::*;
use crate::entries::MachineId;
use crate::entries::fixture;
use crate::entries::limine::strip::is_filler;
use crate::profile::Profile;

mod invariants;

const ID: &str = "0123456789abcdef0123456789abcdef";

/// Each configuration that is accepted, with how many kernels of it are cloned.
const CONFIGS: &[(&str, &str, usize)] = &[
    ("comments", include_str!("configs/comments.conf"), 1),
    ("crlf", include_str!("configs/crlf.conf"), 1),
    (
        "default-below",
        include_str!("configs/default-below.conf"),
        1,
    ),
    (
        "default-by-path",
        include_str!("configs/default-by-path.conf"),
        1,
    ),
    (
        "default-on-folder",
        include_str!("configs/default-on-folder.conf"),
        1,
    ),
    (
        "default-out-of-range",
        include_str!("configs/default-out-of-range.conf"),
        1,
    ),
    (
        "dropped-by-tool",
        include_str!("configs/dropped-by-tool.conf"),
        1,
    ),
    ("fallback", include_str!("configs/fallback.conf"), 1),
    ("first-tool", include_str!("configs/first-tool.conf"), 1),
    ("flat-v8", include_str!("configs/flat-v8.conf"), 1),
    (
        "folder-collapsed",
        include_str!("configs/folder-collapsed.conf"),
        1,
    ),
    (
        "folder-nested",
        include_str!("configs/folder-nested.conf"),
        1,
    ),
    (
        "foreign-in-block",
        include_str!("configs/foreign-in-block.conf"),
        1,
    ),
    (
        "from-a-bench-boot",
        include_str!("configs/from-a-bench-boot.conf"),
        2,
    ),
    (
        "hashes-blake3",
        include_str!("configs/hashes-blake3.conf"),
        1,
    ),
    ("hidden-rows", include_str!("configs/hidden-rows.conf"), 1),
    (
        "id-upper-case",
        include_str!("configs/id-upper-case.conf"),
        1,
    ),
    ("long-title", include_str!("configs/long-title.conf"), 1),
    ("machines", include_str!("configs/machines.conf"), 1),
    ("macros", include_str!("configs/macros.conf"), 1),
    ("markers-lost", include_str!("configs/markers-lost.conf"), 1),
    (
        "no-id-by-path",
        include_str!("configs/no-id-by-path.conf"),
        1,
    ),
    (
        "no-last-newline",
        include_str!("configs/no-last-newline.conf"),
        1,
    ),
    (
        "our-old-block",
        include_str!("configs/our-old-block.conf"),
        1,
    ),
    ("own-options", include_str!("configs/own-options.conf"), 1),
    (
        "seeds-old-block",
        include_str!("configs/seeds-old-block.conf"),
        1,
    ),
    (
        "snapshots-only-after",
        include_str!("configs/snapshots-only-after.conf"),
        1,
    ),
    ("tabs", include_str!("configs/tabs.conf"), 1),
    ("tool", include_str!("configs/tool.conf"), 2),
    (
        "tool-older-names",
        include_str!("configs/tool-older-names.conf"),
        1,
    ),
    ("uki", include_str!("configs/uki.conf"), 1),
    (
        "uki-with-line",
        include_str!("configs/uki-with-line.conf"),
        1,
    ),
];

/// Each that is refused, with the reason.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "builtin-macro",
        include_str!("refused/builtin-macro.conf"),
        "takes for a macro",
    ),
    (
        "child-first",
        include_str!("refused/child-first.conf"),
        "line 1: \"//linux-cachyos\" has 2 slashes",
    ),
    (
        "control",
        include_str!("refused/control.conf"),
        "holds '\\u{1b}'",
    ),
    (
        "empty",
        include_str!("refused/empty.conf"),
        "matches \"linux-cachyos\": there is none",
    ),
    (
        "globals-only",
        include_str!("refused/globals-only.conf"),
        "there is none",
    ),
    (
        "macro-in-macro",
        include_str!("refused/macro-in-macro.conf"),
        "takes for a macro",
    ),
    (
        "memtest",
        include_str!("refused/memtest.conf"),
        "there is none",
    ),
    (
        "no-match",
        include_str!("refused/no-match.conf"),
        "there is \"linux-lts\"",
    ),
    (
        "nul",
        include_str!("refused/nul.conf"),
        "line 4: it holds a NUL",
    ),
    (
        "only-other-machine",
        include_str!("refused/only-other-machine.conf"),
        "there is none",
    ),
    (
        "open-macro",
        include_str!("refused/open-macro.conf"),
        "line 4: `${` has no `}`",
    ),
    (
        "skipped-level",
        include_str!("refused/skipped-level.conf"),
        "line 2: \"///linux-cachyos\" has 3 slashes",
    ),
    (
        "too-long",
        include_str!("refused/too-long.conf"),
        "the kernel keeps 2047",
    ),
];

fn generated(text: &str) -> Result<Generated, EntryError> {
    let (machine, id) = (fixture::machine(), ID.parse::<MachineId>().expect("an id"));
    regenerate(
        text,
        &Request {
            machine: &machine,
            machine_id: Some(&id),
            own_line: "root=UUID=9 rw bench_profile=unlimited",
            uefi: true,
        },
    )
}

fn new(name: &str) -> Generated {
    let text = CONFIGS
        .iter()
        .find(|(known, ..)| *known == name)
        .expect("a file")
        .1;
    generated(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The command line of the entry with that title.
fn line_of(text: &str, title: &str) -> String {
    let config = Config::parse(text).expect("it parses");
    let entry = (0..config.entries.len())
        .find(|entry| config.entries[*entry].title == title)
        .unwrap_or_else(|| panic!("no {title}: {text}"));
    machine::command_line(&config, entry)
        .expect("a line")
        .to_owned()
}

#[test]
fn what_is_refused_says_where_and_why() {
    for (name, text, why) in REFUSED {
        let error = generated(text).expect_err(name).to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn every_file_is_in_a_list() {
    let listed = CONFIGS
        .iter()
        .map(|(name, ..)| format!("configs/{name}.conf"));
    let refused = REFUSED
        .iter()
        .map(|(name, ..)| format!("refused/{name}.conf"));
    let listed: std::collections::BTreeSet<String> = listed.chain(refused).collect();
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/entries/limine/tests");
    let mut found = std::collections::BTreeSet::new();
    for folder in ["configs", "refused"] {
        for file in std::fs::read_dir(format!("{here}/{folder}")).expect("a folder") {
            let name = file.expect("a file").file_name();
            found.insert(format!("{folder}/{}", name.to_string_lossy()));
        }
    }
    assert_eq!(found, listed);
}

#[test]
fn a_clone_is_what_its_kernel_is_but_for_the_line() {
    let text = new("tool").text;
    let expected = format!(
        "  //linux-cachyos benchmark multi-core
  comment: benchmark profile multi-core
  protocol: linux
  kernel_path: boot():/{ID}/linux-cachyos/vmlinuz#{}
  module_path: boot():/{ID}/linux-cachyos/initramfs
  cmdline: root=UUID=1 rw quiet bench_profile=multi-core nosmt isolcpus=managed_irq,8-15 nohz_full=8-15 rcu_nocbs=8-15 rcu_nocb_poll irqaffinity=0-7 systemd.cpu_affinity=0-7 systemd.unit=multi-user.target systemd.swap=0 systemd.mask=plasmalogin.service",
        "a".repeat(128)
    );
    assert!(text.contains(&expected), "{text}");
    let kept = new("own-options").text;
    for line in [
        "textmode: yes",
        "resolution: 1920x1080",
        "dtb_path: boot():/a.dtb",
    ] {
        assert_eq!(kept.matches(line).count(), 4, "{line}: {kept}");
    }
}

#[test]
fn limine_8_finds_the_kernel_and_the_line_that_it_would_have_taken() {
    let text = new("flat-v8").text;
    let line = line_of(&text, "Arch with linux-cachyos benchmark unlimited");
    assert!(
        line.starts_with("root=/dev/sda2 rw bench_profile=unlimited "),
        "{line}"
    );
    assert!(!line.contains("ignored"), "{line}");
    assert_eq!(
        text.matches("module_path: boot():/intel-ucode.img").count(),
        4
    );
    // Behind the kernel, before the fallback that follows.
    let (block, fallback) = (text.find(BEGIN), text.find("/Arch fallback"));
    assert!(block < fallback, "{text}");
}

#[test]
fn macros_are_taken_as_limine_takes_them() {
    let text = new("macros").text;
    let line = line_of(&text, "linux-cachyos benchmark unlimited");
    assert!(
        line.starts_with("root=UUID=77 rw quiet splash bench_profile="),
        "{line}"
    );
    assert!(
        text.contains(&format!("kernel_path: boot():/{ID}/${{KERNEL}}/vmlinuz")),
        "{text}"
    );
}

#[test]
fn a_unified_image_without_a_line_has_the_machines_own() {
    let text = new("uki").text;
    let line = line_of(&text, "linux-cachyos benchmark multi-core");
    assert!(
        line.starts_with("root=UUID=9 rw bench_profile=multi-core "),
        "{line}"
    );
    assert_eq!(
        text.matches("path: boot():/EFI/Linux/").count(),
        4,
        "{text}"
    );
    let line = line_of(
        &new("uki-with-line").text,
        "linux-cachyos benchmark single-core",
    );
    assert!(
        line.starts_with("root=UUID=2 rw bench_profile=single-core "),
        "{line}"
    );
}

#[test]
fn the_default_stays_where_it_was() {
    // The fifth row was Windows; three rows above it are new.
    let text = new("default-below").text;
    assert!(
        text.contains("  # bench-profile: default_entry without 5, with 8 (the benchmark entries)\n  default_entry: 8\n"),
        "{text}"
    );
    // The tool wrote the file anew: it kept the number, and dropped what it counted.
    let text = new("dropped-by-tool").text;
    assert!(
        text.contains("without 4, with 7 (the benchmark entries)\ndefault_entry: 7\n"),
        "{text}"
    );
    // Written before, with other entries, and no note.
    let text = new("our-old-block").text;
    assert!(text.contains("default_entry: 6\n"), "{text}");
    for name in [
        "default-by-path",
        "default-on-folder",
        "default-out-of-range",
        "tool",
    ] {
        assert!(
            !new(name).text.contains("bench-profile: default_entry"),
            "{name}"
        );
    }
    // A folder that is not expanded is one row, whatever is in it.
    assert!(
        new("folder-collapsed")
            .text
            .starts_with("default_entry: 2\n")
    );
    // A row that this firmware does not show counts for nothing.
    let text = new("hidden-rows").text;
    assert!(text.contains("default_entry: 6\n"), "{text}");
}

#[test]
fn a_default_that_was_ours_and_is_gone_is_a_normal_entry() {
    let (_, text, _) = CONFIGS
        .iter()
        .find(|(name, ..)| *name == "our-old-block")
        .expect("it");
    let text = text
        .replace("default_entry: 6", "default_entry: 4")
        .replace("//linux-cachyos benchmark", "//linux-old benchmark");
    let new = generated(&text).expect("entries");
    assert!(new.text.contains("default_entry: 2\n"), "{}", new.text);
    assert!(new.notes[0].contains("is gone"), "{:?}", new.notes);
}

#[test]
fn older_entries_go_and_everything_else_stays() {
    for name in [
        "our-old-block",
        "seeds-old-block",
        "markers-lost",
        "foreign-in-block",
    ] {
        let text = new(name).text;
        assert!(!text.contains("/old/"), "{name}: {text}");
        assert!(!text.contains("UUID=0"), "{name}: {text}");
        assert_eq!(text.matches(BEGIN).count(), 1, "{name}: {text}");
    }
    let text = new("first-tool").text;
    assert!(!text.contains("//linux-cachyos benchmark\n"), "{text}");
    assert!(text.contains("/My benchmark\n"), "{text}");
}

#[test]
fn a_kernel_installed_during_a_boot_into_a_profile_gets_a_clean_line_again() {
    let new = new("from-a-bench-boot");
    assert_eq!(line_of(&new.text, "linux-cachyos"), "root=UUID=1 rw quiet");
    assert!(
        new.notes[0].contains("\"linux-cachyos\""),
        "{:?}",
        new.notes
    );
    let line = line_of(&new.text, "linux-cachyos benchmark unlimited");
    assert!(
        line.starts_with("root=UUID=1 rw quiet bench_profile=unlimited "),
        "{line}"
    );
    assert!(!line.contains("a.service"), "{line}");
}

#[test]
fn an_older_limine_shows_the_profile_of_a_long_title() {
    let text = new("long-title").text;
    let config = Config::parse(&text).expect("it parses");
    for entry in &config.entries {
        if profile_of_title(&entry.title).is_some() {
            assert!(entry.title.len() + entry.depth <= 63, "{}", entry.title);
        }
    }
}

#[test]
fn what_makes_a_profile_stick_is_said() {
    let text = format!(
        "remember_last_entry: yes\n{}",
        CONFIGS.last().expect("one").1
    );
    let notes = generated(&text).expect("entries").notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("remember_last_entry")),
        "{notes:?}"
    );
}

#[test]
fn entries_can_be_found_again() {
    let benches = benches(&new("tool").text).expect("it parses");
    let ids: Vec<&str> = benches.iter().map(|bench| bench.id.as_str()).collect();
    assert_eq!(
        ids[..3],
        [
            "CachyOS/linux-cachyos benchmark single-core",
            "CachyOS/linux-cachyos benchmark multi-core",
            "CachyOS/linux-cachyos benchmark unlimited"
        ]
    );
    assert_eq!(ids.len(), 6);
    assert_eq!(benches[1].profile, Profile::MultiCore);
}
