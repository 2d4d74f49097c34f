//! A fuzz target for each reader of a boot loader's files, on stable Rust: each file of its corpus as it is, then
//! mutations of them. What a target panics at belongs in `tests/corpus/TARGET`, where every run reads it again.
//!
//! `FUZZ_SECONDS=600 cargo test --release -p bench-profile --test fuzz` goes on for that long with each target, from a
//! start of its own each time, which it prints.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bench_profile::command_line;
use bench_profile::entries::{MachineId, Request, bls, grub, limine};
use bench_profile::machine::{Machine, MachineFile};
use bench_profile::profile::Profile;

/// How many mutations each run tries where nobody says how long.
const MUTATIONS: u32 = 300;
/// The longest input, in bytes.
const LONGEST: usize = 8192;

fn machine() -> Machine {
    let text = include_str!("../../../config/machine.toml");
    let mut machine = MachineFile::parse("machine.toml", text)
        .expect("it is correct")
        .machine;
    machine.kernel_entry_match = String::new();
    machine
}

fn with_request<R>(ask: impl FnOnce(&Request<'_>) -> R) -> R {
    let id: MachineId = "0123456789abcdef0123456789abcdef".parse().expect("an id");
    ask(&Request {
        machine: &machine(),
        machine_id: Some(&id),
        own_line: "root=UUID=9 bench_profile=unlimited",
        uefi: true,
    })
}

/// What is taken is done once and for all, and can be read.
fn of_limine(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = limine::benches(&text);
    with_request(|request| {
        if let Ok(new) = limine::regenerate(&text, request) {
            let again = limine::regenerate(&new.text, request).expect("what was written is taken");
            assert_eq!(again.text, new.text);
            let benches = limine::benches(&new.text).expect("it is read");
            assert!(benches.len() >= 3, "{}", new.text);
        }
    });
}

/// Files are parted by lines that begin with `=== `, which name them.
fn of_bls(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut files: BTreeMap<String, String> = text
        .split("=== ")
        .filter_map(|file| file.split_once('\n'))
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let _ = bls::benches(&files);
    with_request(|request| {
        let orphans = bls::orphans(&files, request);
        let Ok(new) = bls::regenerate(&files, request) else {
            return;
        };
        for (name, text) in new.changes {
            // Nothing that is not ours goes.
            let ours = |text: &String| text.starts_with("# Made by bench-profile");
            match text {
                Some(text) => drop(files.insert(name, text)),
                None => assert!(files.remove(&name).as_ref().is_some_and(ours), "{name}"),
            }
        }
        assert!(orphans.iter().all(|name| !files.contains_key(name)));
        let again = bls::regenerate(&files, request).expect("what was written is taken");
        assert_eq!(again.changes, []);
        assert!(bls::benches(&files).len() >= 3);
    });
}

fn of_grub(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = grub::benches(&text);
    with_request(|request| {
        let _ = grub::generate(&text, request);
        if let Ok(new) = grub::regenerate(&text, request) {
            let again = grub::regenerate(&new.text, request).expect("what was written is taken");
            assert_eq!(again.text, new.text);
            grub::benches(&new.text).expect("it is read");
        }
    });
}

fn of_environment(bytes: &[u8]) {
    let mut block = bytes.to_vec();
    let _ = grub::env::get(&block, grub::env::NEXT);
    block.resize(block.len().max(1024), b'#');
    let _ = grub::env::get(&block, grub::env::NEXT);
    if let Ok(new) = grub::env::set(&block, grub::env::NEXT, Some("a>b\\c")) {
        assert_eq!(new.len(), block.len());
        let got = grub::env::get(&new, grub::env::NEXT);
        assert_eq!(got, Ok(Some("a>b\\c".to_owned())));
        let gone = grub::env::set(&new, grub::env::NEXT, None).expect("there is room");
        assert_eq!(grub::env::get(&gone, grub::env::NEXT), Ok(None));
    }
}

/// A profile's line names it, and made of a line of a boot into a profile it is the same again.
fn of_command_line(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    let machine = machine();
    for profile in Profile::ALL {
        if let Ok(merged) = command_line::merged(&line, &machine, profile) {
            assert_eq!(command_line::booted(&merged), Ok(Some(profile)), "{line:?}");
            // Masks in a line with the marker are a profile's, so that masks of the machine's own go once, and no more.
            let again = command_line::merged(&merged, &machine, profile).expect("it is shorter");
            let third = command_line::merged(&again, &machine, profile);
            assert_eq!(third.as_ref(), Ok(&again), "{line:?}");
            let own = |line: &str| command_line::stripped(line).join(" ");
            assert_eq!(own(&again), own(&merged), "{line:?}");
        }
    }
}

type Target = fn(&[u8]);

/// Name, further files to begin with, and what is done with an input.
const TARGETS: [(&str, &str, Target); 5] = [
    ("limine", "src/entries/limine/tests/configs", of_limine),
    ("bls", "", of_bls),
    ("grub", "src/entries/grub/tests", of_grub),
    ("environment", "", of_environment),
    ("command-line", "", of_command_line),
];

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file() && path.extension().is_none_or(|ending| ending != "rs"))
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    files.sort();
    files
}

fn corpus(name: &str, further: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = files(&here.join("tests/corpus").join(name));
    if !further.is_empty() {
        all.extend(files(&here.join(further)));
    }
    assert!(!all.is_empty(), "{name} has no corpus");
    all
}

/// xorshift64*: chance that can be had again.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % end.max(1)
    }

    fn range(&mut self, of: &[u8]) -> std::ops::Range<usize> {
        let from = self.below(of.len() + 1);
        from..from + self.below((of.len() - from).min(64) + 1)
    }
}

/// Pieces that mean something to one of the readers.
const WORDS: [&str; 24] = [
    "\n",
    "\r\n",
    "/",
    "//+",
    "{",
    "}",
    "'",
    "\"",
    "\\",
    "#",
    "${",
    "}=",
    ":",
    "=== a.conf\n",
    "bench_profile=unlimited",
    " benchmark unlimited\n",
    "default_entry: 3\n",
    "menuentry ",
    "linux ",
    "--",
    "\0",
    "\u{fffd}",
    "# BEGIN AUTO BENCHMARK ENTRIES\n",
    "# END AUTO BENCHMARK ENTRIES\n",
];

fn mutated(corpus: &[(PathBuf, Vec<u8>)], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = corpus[chance.below(corpus.len())].1.clone();
    for _ in 0..=chance.below(6) {
        let at = chance.range(&bytes);
        match chance.below(6) {
            0 => drop(bytes.splice(at, [])),
            1 => drop(bytes.splice(at.start..at.start, WORDS[chance.below(WORDS.len())].bytes())),
            2 => drop(bytes.splice(at, WORDS[chance.below(WORDS.len())].bytes())),
            3 => {
                let other = &corpus[chance.below(corpus.len())].1;
                let piece = other[chance.range(other)].to_vec();
                bytes.splice(at, piece);
            }
            4 => {
                let piece = bytes[at.clone()].to_vec();
                bytes.splice(at.end..at.end, piece);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at.start) {
                    *byte ^= 1 << chance.below(8);
                }
            }
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

#[test]
fn every_corpus_is_read_again() {
    for (name, further, target) in TARGETS {
        for (path, bytes) in corpus(name, further) {
            let read = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            assert!(read.is_ok(), "{name} fails at {}", path.display());
        }
    }
}

#[test]
fn no_mutation_is_too_much() {
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = match seconds {
        Some(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |time| time.subsec_nanos().into()),
        None => 0x5eed,
    };
    println!("beginning with {seed}");
    for (name, further, target) in TARGETS {
        let corpus = corpus(name, further);
        let mut chance = Chance(seed | 1);
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut tried = 0;
        while end.map_or(tried < MUTATIONS, |end| Instant::now() < end) {
            tried += 1;
            let bytes = mutated(&corpus, &mut chance);
            let read = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            assert!(
                read.is_ok(),
                "{name} fails at this, number {tried} from {seed}; keep it in tests/corpus/{name}:\n{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
        println!("{name}: {tried} mutations");
    }
}
