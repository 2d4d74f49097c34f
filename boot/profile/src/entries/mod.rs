//! Boot entries of the profiles: read from a loader's own files, and written into them. Pure: texts come in, texts
//! go out.
//!
//! Each kernel entry of this machine that the machine file names is cloned once for each profile, with the profile's
//! parameters merged into its command line. What an earlier run or an older tool wrote is taken away first, so that
//! doing it twice changes nothing. No entry of ours ever becomes the default.

pub mod bls;
mod diff;
pub mod grub;
mod kernel;
pub mod limine;

#[cfg(test)]
mod fixture {
    /// The shipped one, which wants `linux-cachyos`.
    pub fn machine() -> crate::machine::Machine {
        let text = include_str!("../../../../config/machine.toml");
        let file = crate::machine::MachineFile::parse("machine.toml", text);
        file.expect("it is correct").machine
    }
}

use std::fmt;
use std::str::FromStr;

pub use diff::{Context, unified};

use crate::command_line::CommandLineError;
use crate::machine::Machine;
use crate::profile::Profile;

/// What is known of the machine whose entries are written.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The machine file.
    pub machine: &'a Machine,
    /// Tells this system's entries from those of others on the same disk.
    pub machine_id: Option<&'a MachineId>,
    /// The machine's command line, for an entry that has none of its own, such as a unified kernel image. It may be
    /// of a boot into a profile.
    pub own_line: &'a str,
    /// Whether it booted by UEFI: entries can be for one firmware alone.
    pub uefi: bool,
}

/// What was written, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The file's new text.
    pub text: String,
    /// What a person should know, a sentence each.
    pub notes: Vec<String>,
}

/// An entry of a profile that is in a loader's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Its profile.
    pub profile: Profile,
    /// What its kernel is known by: a title, a path, a version.
    pub kernel: String,
    /// As the loader names it for a one-shot boot.
    pub id: String,
}

/// The entry of `profile` to boot: that of the running kernel where it has one, else the first.
pub fn of_profile<'b>(
    benches: &'b [Bench],
    profile: Profile,
    running_kernel: &str,
) -> Option<&'b Bench> {
    let mut of = benches.iter().filter(|bench| bench.profile == profile);
    let first = of.clone().next();
    of.find(|bench| !running_kernel.is_empty() && bench.kernel.contains(running_kernel))
        .or(first)
}

/// Why no entries can be written. The file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Nothing to clone.
    #[error(
        "no kernel entry of this machine matches {wanted}: there is {seen}. Set `boot.kernel_entry_match` in \
         /etc/bench-profile/machine.toml to a part of the right one's name"
    )]
    NoMatch {
        /// What was looked for.
        wanted: String,
        /// The kernels that are there.
        seen: String,
    },
    /// The loader would not take the file as it is.
    #[error("line {line}: {reason}")]
    Malformed {
        /// Where.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// An entry's command line cannot be merged.
    #[error("{entry}: {error}")]
    CommandLine {
        /// The entry.
        entry: String,
        /// Why.
        error: CommandLineError,
    },
    /// A file has a name that ours would have.
    #[error("{0} was not made by bench-profile: move it away, or give it another name")]
    Foreign(String),
}

impl EntryError {
    fn no_match<S: fmt::Debug>(request: &Request<'_>, seen: &[S]) -> EntryError {
        let wanted = &request.machine.kernel_entry_match;
        EntryError::NoMatch {
            wanted: match wanted.as_str() {
                "" => "(any kernel would do)".to_owned(),
                wanted => format!("{wanted:?}"),
            },
            seen: match seen {
                [] => "none".to_owned(),
                seen => {
                    let names: Vec<String> = seen
                        .iter()
                        .take(8)
                        .map(|name| format!("{name:?}"))
                        .collect();
                    names.join(", ")
                }
            },
        }
    }
}

/// As in /etc/machine-id: 32 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineId(String);

impl MachineId {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MachineId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.trim().to_ascii_lowercase();
        match is_machine_id(&id) {
            true => Ok(MachineId(id)),
            false => Err("a machine id has 32 hexadecimal digits".to_owned()),
        }
    }
}

fn is_machine_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What an entry of a profile is called.
fn title(kernel: &str, profile: Profile) -> String {
    format!("{kernel} {}", suffix(profile))
}

/// What the titles of our entries end with.
fn suffix(profile: Profile) -> String {
    format!("benchmark {profile}")
}

/// The profile that a title ends with.
fn profile_of_title(title: &str) -> Option<Profile> {
    Profile::ALL.into_iter().find(|profile| {
        let kernel = title.trim_end().strip_suffix(&suffix(*profile));
        kernel.is_some_and(|kernel| kernel.is_empty() || kernel.ends_with(' '))
    })
}
