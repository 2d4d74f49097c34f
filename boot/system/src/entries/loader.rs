//! Which boot loader is here, and where its files are.

use std::fmt;
use std::str::FromStr;

use super::{EntriesError, LARGEST, Options, limine};
use crate::root::{FileError, Root};

/// A boot loader that can have entries for the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// A limine.conf.
    Limine,
    /// Entries of the Boot Loader Specification.
    SystemdBoot,
    /// A grub.cfg.
    Grub,
}

/// In the order in which they are looked for.
const ALL: [Loader; 3] = [Loader::Limine, Loader::SystemdBoot, Loader::Grub];

/// Where boot partitions usually are, below the root.
const PLACES: [&str; 3] = ["boot", "efi", "boot/efi"];
/// The Boot Loader Interface's variables.
const INTERFACE: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Where the firmware's variables are.
const VARIABLES: &str = "sys/firmware/efi/efivars";

impl Loader {
    /// As it is written on the command line and on the bus.
    pub fn name(self) -> &'static str {
        match self {
            Loader::Limine => "limine",
            Loader::SystemdBoot => "systemd-boot",
            Loader::Grub => "grub",
        }
    }

    /// What is looked for.
    fn traces(self) -> &'static str {
        match self {
            Loader::Limine => "limine.conf",
            Loader::SystemdBoot => "loader/entries",
            Loader::Grub => "grub/grub.cfg or grub2/grub.cfg",
        }
    }
}

impl fmt::Display for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Loader {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        ALL.into_iter()
            .find(|loader| loader.name() == name)
            .ok_or_else(|| "limine, systemd-boot and grub are known".to_owned())
    }
}

/// The boot partitions to look at.
pub fn places(options: &Options) -> Vec<String> {
    match &options.boot {
        Some(place) => vec![place.trim_matches('/').to_owned()],
        None => PLACES.map(str::to_owned).into(),
    }
}

/// The loader whose entries are meant.
pub fn choose(root: &Root, options: &Options) -> Result<Loader, EntriesError> {
    if let Some(loader) = options.loader {
        return match is_here(root, options, loader, true)? {
            true => Ok(loader),
            false => Err(EntriesError::Absent(loader, loader.traces().to_owned())),
        };
    }
    let mut here = Vec::new();
    for loader in ALL {
        if is_here(root, options, loader, false)? {
            here.push(loader);
        }
    }
    match (
        booted(root).filter(|booted| here.contains(booted)),
        here.as_slice(),
    ) {
        (Some(booted), _) => Ok(booted),
        (None, []) => Err(EntriesError::NoLoader),
        (None, [only]) => Ok(*only),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|loader| loader.name()).collect();
            Err(EntriesError::Ambiguous(names.join(" and ")))
        }
    }
}

fn is_here(
    root: &Root,
    options: &Options,
    loader: Loader,
    named: bool,
) -> Result<bool, EntriesError> {
    Ok(match loader {
        Loader::Limine => limine::find(root, options)?.is_some(),
        // GRUB reads the same folder; systemd-boot leaves more.
        Loader::SystemdBoot => folders(root, options).iter().any(|folder| {
            let place = folder.trim_end_matches("/loader/entries");
            let own = ["loader/loader.conf", "loader/entries.srel", "EFI/systemd"];
            named || own.iter().any(|own| root.exists(&format!("{place}/{own}")))
        }),
        Loader::Grub => grub(root, options).is_some(),
    })
}

/// The folders of entries of the Boot Loader Specification.
pub fn folders(root: &Root, options: &Options) -> Vec<String> {
    places(options)
        .into_iter()
        .map(|place| format!("{place}/loader/entries"))
        // A link would be another's, such as ostree's.
        .filter(|folder| root.open_folder(folder).is_ok())
        .collect()
}

/// GRUB's folder, which has its grub.cfg.
pub fn grub(root: &Root, options: &Options) -> Option<String> {
    places(options)
        .iter()
        .flat_map(|place| [format!("{place}/grub"), format!("{place}/grub2")])
        .find(|folder| root.exists(&format!("{folder}/grub.cfg")))
}

/// The loader that says that it booted the machine.
pub fn booted(root: &Root) -> Option<Loader> {
    let info = variable(root, "LoaderInfo").ok().flatten()?.to_lowercase();
    ALL.into_iter()
        .find(|loader| info.starts_with(loader.name()))
}

/// Whether the firmware lets nothing run but what is signed.
pub fn secure_boot(root: &Root) -> bool {
    let path = format!("{VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    // Four bytes of attributes, then the value.
    matches!(root.bytes(&path, LARGEST), Ok(Some(bytes)) if bytes.get(4) == Some(&1))
}

/// Whether the machine booted by UEFI.
pub fn uefi(root: &Root) -> bool {
    root.exists("sys/firmware/efi")
}

/// A text of the Boot Loader Interface.
pub fn variable(root: &Root, name: &str) -> Result<Option<String>, FileError> {
    let Some(bytes) = root.bytes(&format!("{VARIABLES}/{name}-{INTERFACE}"), LARGEST)? else {
        return Ok(None);
    };
    let units: Vec<u16> = bytes
        .get(4..)
        .unwrap_or_default()
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .take_while(|unit| *unit != 0)
        .collect();
    Ok(Some(String::from_utf16_lossy(&units)))
}
