//! Which entries of a limine.conf are this machine's kernels.

use super::EntryError;
use super::config::Config;
use crate::entries::kernel::Kernel;
use crate::entries::{Request, profile_of_title};

/// What Limine calls an entry that starts a Linux kernel.
const LINUX: &str = "linux";
/// What it calls one that starts an EFI program, as a unified kernel image is.
const EFI: [&str; 3] = ["efi", "uefi", "efi_chainload"];
/// Where unified kernel images are.
const IMAGES: &str = "/efi/linux/";

/// Whether it is a unified kernel image.
pub fn is_image(config: &Config<'_>, entry: usize) -> bool {
    let efi = config
        .option(entry, "protocol")
        .is_some_and(|protocol| EFI.iter().any(|efi| protocol.eq_ignore_ascii_case(efi)));
    efi && path(config, entry).is_some_and(|path| path.to_ascii_lowercase().contains(IMAGES))
}

/// Where an entry's kernel is, as Limine looks for it.
pub fn path<'c>(config: &'c Config<'_>, entry: usize) -> Option<&'c str> {
    ["kernel_path", "path", "image_path"]
        .iter()
        .find_map(|key| config.option(entry, key))
}

/// An entry's command line, as Limine looks for it.
pub fn command_line<'c>(config: &'c Config<'_>, entry: usize) -> Option<&'c str> {
    ["kernel_cmdline", "cmdline"]
        .iter()
        .find_map(|key| config.option(entry, key))
}

/// The kernels to be cloned, in the file's order.
pub fn kernels(config: &Config<'_>, request: &Request<'_>) -> Result<Vec<usize>, EntryError> {
    let ours = own_kernels(config, request);
    let wanted: Vec<usize> = ours
        .iter()
        .copied()
        .filter(|entry| kernel(config, *entry).is_some_and(|kernel| kernel.is_wanted(request)))
        .collect();
    if wanted.is_empty() {
        let seen: Vec<&str> = ours
            .iter()
            .map(|entry| config.entries[*entry].title.as_str())
            .collect();
        return Err(EntryError::no_match(request, &seen));
    }
    Ok(wanted)
}

/// Every kernel of this machine but those for emergencies, by the machine id that its folder names, else by its path.
pub fn own_kernels(config: &Config<'_>, request: &Request<'_>) -> Vec<usize> {
    let all: Vec<usize> = (0..config.entries.len())
        .filter(|entry| is_kernel(config, *entry))
        .collect();
    let own = request.machine_id.map(|id| id.as_str());
    let by = |id: fn(&Config<'_>, usize) -> Option<String>| -> Vec<usize> {
        let is_own = |entry: &usize| own.is_some() && id(config, *entry).as_deref() == own;
        all.iter().copied().filter(is_own).collect()
    };
    let commented = by(|config, entry| {
        config
            .ancestry(entry)
            .find_map(|entry| commented_id(config, entry))
    });
    if !commented.is_empty() {
        return commented;
    }
    // Nobody says whose they are: those that are in no other machine's folder.
    let other = |entry: usize| {
        let commented = config
            .ancestry(entry)
            .find_map(|entry| commented_id(config, entry));
        let foreign = |id: &str| own != Some(id);
        commented.as_deref().is_some_and(foreign)
            || kernel(config, entry)
                .and_then(|kernel| kernel.machine_id().map(str::to_ascii_lowercase))
                .as_deref()
                .is_some_and(foreign)
    };
    all.into_iter().filter(|entry| !other(*entry)).collect()
}

/// The machine id in any comment of an entry.
fn commented_id(config: &Config<'_>, entry: usize) -> Option<String> {
    config
        .options(entry)
        .filter(|(_, key, _)| key.eq_ignore_ascii_case("comment"))
        .flat_map(|(_, _, value)| value.split([' ', '\t', ',']))
        .find_map(|word| word.strip_prefix("machine-id="))
        .map(str::to_ascii_lowercase)
}

fn is_kernel(config: &Config<'_>, entry: usize) -> bool {
    let in_snapshots = config.ancestry(entry).any(|entry| {
        config.entries[entry]
            .title
            .eq_ignore_ascii_case("snapshots")
    });
    !config.is_folder(entry)
        && !in_snapshots
        // Called as one of ours, and yet not ours: a clone of it would be called so twice.
        && profile_of_title(&config.entries[entry].title).is_none()
        && kernel(config, entry).is_some_and(|kernel| !kernel.is_special())
}

/// A kernel entry; none for what starts something else.
fn kernel<'c>(config: &'c Config<'_>, entry: usize) -> Option<Kernel<'c>> {
    let protocol = config.option(entry, "protocol")?;
    if !protocol.eq_ignore_ascii_case(LINUX) && !is_image(config, entry) {
        return None;
    }
    let values = |key: &'static str| {
        config
            .options(entry)
            .filter(move |(_, known, _)| known.eq_ignore_ascii_case(key))
            .map(|(_, _, value)| value)
    };
    Some(Kernel {
        title: &config.entries[entry].title,
        path: path(config, entry)?,
        initrds: values("module_path").collect(),
        names: values("comment")
            .filter_map(|comment| comment.split_once("kernel-id="))
            .map(|(_, id)| id)
            .collect(),
    })
}
