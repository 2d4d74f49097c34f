//! QEMU out of an image of its own, the same on every host.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::images;
use crate::process;

/// The tree that the emulator runs from.
#[derive(Debug, Clone)]
pub struct Emulator {
    tree: PathBuf,
}

impl Emulator {
    /// The image's, which is built now unless it is there.
    pub fn ensure() -> Result<Self> {
        Ok(Self {
            tree: images::ensure("emulator")?,
        })
    }

    /// The command to run it, behind the words of `prefix`; its arguments are to be added.
    ///
    /// The tree's own loader runs it with the tree's own libraries: no root, no chroot, so that QEMU sees the host's
    /// files under their names, and nothing of the host's libraries has to fit.
    pub fn command(&self, prefix: &[&str]) -> Command {
        let usr = self.tree.join("usr");
        let libraries = usr.join("lib/x86_64-linux-gnu");
        let loader = usr.join("lib64/ld-linux-x86-64.so.2");
        let mut command = match prefix {
            [] => Command::new(loader),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(loader);
                command
            }
        };
        command
            .arg("--library-path")
            .arg(&libraries)
            .arg(usr.join("bin/qemu-system-x86_64"))
            .env("QEMU_MODULE_DIR", libraries.join("qemu"));
        for firmware in ["share/qemu", "share/seabios"] {
            command.arg("-L").arg(usr.join(firmware));
        }
        command
    }

    /// What it says that it is.
    pub fn version(&self) -> Result<String> {
        let mut command = self.command(&[]);
        command.arg("--version");
        process::output_of(&mut command)
    }
}

impl fmt::Display for Emulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "QEMU of {}", self.tree.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_trees_own_files_are_run() {
        let emulator = Emulator {
            tree: "/cache/emulator".into(),
        };
        let command = emulator.command(&["setpriv", "--"]);
        assert_eq!(command.get_program(), "setpriv");
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert_eq!(
            words.join(" "),
            "-- /cache/emulator/usr/lib64/ld-linux-x86-64.so.2 --library-path \
             /cache/emulator/usr/lib/x86_64-linux-gnu /cache/emulator/usr/bin/qemu-system-x86_64 \
             -L /cache/emulator/usr/share/qemu -L /cache/emulator/usr/share/seabios"
        );
    }
}
