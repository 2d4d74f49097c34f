//! Limine's own: where its configuration is, and what must not happen to it.

use super::loader::places;
use super::{EntriesError, LARGEST, Options};
use crate::root::Root;

/// Where Limine looks, in its order, on each partition. What is found first hides the rest.
const NAMES: [&str; 6] = [
    "EFI/limine/limine.conf",
    "EFI/BOOT/limine.conf",
    "boot/limine/limine.conf",
    "boot/limine.conf",
    "limine/limine.conf",
    "limine.conf",
];
/// Folders of its programs.
const PROGRAMS: [&str; 2] = ["EFI/limine", "EFI/BOOT"];
/// In its program, what comes before the checksum of its configuration; zeros where there is none.
const SIGNATURE: &[u8] = b"++CONFIG_B2SUM_SIGNATURE++";
const CHECKSUM: usize = 128;
/// The settings of limine-entry-tool that count for enrolment.
const SETTINGS: &str = "etc/default/limine";

/// Its configuration, and what that one hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Below the root, as it is spelt there.
    pub path: String,
    /// Others, which Limine does not read.
    pub hidden: Vec<String>,
}

/// Finds it.
pub fn find(root: &Root, options: &Options) -> Result<Option<Found>, EntriesError> {
    let mut all = Vec::new();
    for place in places(options) {
        for name in NAMES {
            if let Some(path) = spelt(root, &place, name)?
                && !all.contains(&path)
            {
                all.push(path);
            }
        }
    }
    let mut all = all.into_iter();
    Ok(all.next().map(|path| Found {
        path,
        hidden: all.collect(),
    }))
}

/// A path as it is spelt there: letters have no case for Limine, and need not on FAT.
fn spelt(root: &Root, place: &str, name: &str) -> Result<Option<String>, EntriesError> {
    let mut path = place.to_owned();
    for part in name.split('/') {
        let names = match root.open_folder(&path) {
            Ok(_) => root.names(&path)?,
            Err(_) => return Ok(None),
        };
        let exact = names.iter().find(|known| *known == part);
        let Some(known) = exact.or(names.iter().find(|known| known.eq_ignore_ascii_case(part)))
        else {
            return Ok(None);
        };
        path = format!("{path}/{known}");
    }
    Ok(Some(path))
}

/// The program of Limine that has the checksum of its configuration in it.
pub fn enrolled(root: &Root, options: &Options) -> Result<Option<String>, EntriesError> {
    for place in places(options) {
        for folder in PROGRAMS {
            let Some(folder) = spelt(root, &place, folder)? else {
                continue;
            };
            for name in root.names(&folder)? {
                let path = format!("{folder}/{name}");
                if name.to_ascii_lowercase().ends_with(".efi")
                    // Larger than Limine ever was: another's.
                    && let Ok(Some(program)) = root.bytes(&path, LARGEST)
                    && has_checksum(&program)
                {
                    return Ok(Some(path));
                }
            }
        }
    }
    Ok(None)
}

fn has_checksum(program: &[u8]) -> bool {
    program
        .windows(SIGNATURE.len())
        .position(|window| window == SIGNATURE)
        .and_then(|at| program.get(at + SIGNATURE.len()..)?.get(..CHECKSUM))
        .is_some_and(|checksum| checksum.iter().any(|digit| *digit != b'0'))
}

/// Whether limine-entry-tool enrols the configuration after its hooks.
pub fn is_enrolled_by_hooks(root: &Root) -> Result<bool, EntriesError> {
    let text = root.read(SETTINGS)?.unwrap_or_default();
    Ok(text.lines().any(|line| {
        line.trim().split_once('=').is_some_and(|(key, value)| {
            key == "ENABLE_ENROLL_LIMINE_CONFIG"
                && value.trim_matches(['"', '\'']).eq_ignore_ascii_case("yes")
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_checksum_has_zeros_there() {
        let program = |digits: &str| [b"MZ..", SIGNATURE, digits.as_bytes(), b"rest"].concat();
        assert!(!has_checksum(&program(&"0".repeat(CHECKSUM))));
        assert!(has_checksum(&program(&"0a".repeat(CHECKSUM / 2))));
        assert!(!has_checksum(b"MZ"));
        assert!(!has_checksum(&[SIGNATURE, b"1"].concat()), "cut off");
    }
}
