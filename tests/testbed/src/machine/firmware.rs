//! How the machine comes up: QEMU loads the kernel itself, or UEFI looks for a boot loader, as a PC does.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::command::Purpose;

/// UEFI for QEMU, as Debian and Ubuntu have it (package ovmf).
const CODE_OF_HOST: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
/// Its variables, none set yet.
const VARIABLES_OF_HOST: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// The machine's own copies, in the snapshot's folder.
const CODE: &str = "firmware.fd";
const VARIABLES: &str = "variables.fd";

/// The disk with the EFI system partition, raw.
pub const ESP: &str = "esp.raw";

/// What starts the guest's kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Firmware {
    /// QEMU itself, with the image's kernel, initial RAM disk and a command line of ours: the quickest way.
    #[default]
    Kernel,
    /// UEFI, by whatever boot loader its variables and the EFI system partition name. Its variables outlive a reboot.
    Uefi,
}

impl Firmware {
    /// The arguments for UEFI with its variables, and for the disk that it boots from.
    pub(super) fn uefi(purpose: Purpose) -> Vec<String> {
        let thrown_away = match purpose {
            Purpose::Boot => "",
            Purpose::Restore => ",snapshot=on",
        };
        [
            "-drive",
            &format!("if=pflash,unit=0,format=raw,readonly=on,file={CODE}"),
            "-drive",
            &format!("if=pflash,unit=1,format=raw,file={VARIABLES}{thrown_away}"),
            "-drive",
            &format!("file={ESP},if=none,id=esp,format=raw{thrown_away}"),
            "-device",
            "virtio-blk-pci,drive=esp,bootindex=1",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Copies UEFI and its variables to `directory`, and nothing where there is none.
    pub fn copy_to(self, directory: &Path) -> Result<()> {
        for (source, name) in self.files() {
            let contents = fs::read(source).with_context(|| format!("cannot read {source}"))?;
            let target = directory.join(name);
            fs::write(&target, contents)
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
        Ok(())
    }

    /// The bytes of what [`Firmware::copy_to`] copies: another firmware is another machine.
    pub fn contents(self) -> Result<Vec<u8>> {
        let mut contents = Vec::new();
        for (source, _) in self.files() {
            contents.extend(fs::read(source).with_context(|| format!("cannot read {source}"))?);
        }
        Ok(contents)
    }

    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Kernel => &[],
            Self::Uefi => &[(CODE_OF_HOST, CODE), (VARIABLES_OF_HOST, VARIABLES)],
        }
    }
}
