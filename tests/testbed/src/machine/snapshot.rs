//! The booted machine, saved once and restored for each scenario.
//!
//! A snapshot is a folder: disk, kernel, and the state of memory and devices as a migration stream. QEMU's internal
//! snapshots (savevm) would need a private copy of the disk for each restore; this way the disk is opened read-only
//! with a throw-away layer over it, and several machines can be restored from one snapshot at the same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::command::{self, Accelerator, Hardware, Purpose, STATE};
use super::disk::{self, PayloadDisk};
use super::emulator::Emulator;
use super::esp;
use super::firmware::Firmware;
use super::key::Key;
use super::probe;
use super::qemu::Qemu;
use crate::guest::PAYLOAD_IN_GUEST;
use crate::progress;

/// Bumped when the code here changes what a snapshot contains.
const VERSION: &str = "2";

/// For a boot under software emulation, measured at 70 s on two busy cores.
pub const BOOT: Duration = Duration::from_secs(600);

/// For writing or reading the state, measured at 2 s.
const TRANSFER: Duration = Duration::from_secs(120);

/// Run in the guest before it is saved: waits until it is at rest and refuses one that could not show anything.
/// `$1` is the mount point of the payload.
const SETTLE: &str = r#"
set -eu
user=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
refuse() { echo "$1"; exit 1; }
systemctl is-system-running --wait || { systemctl --failed --no-legend; exit 1; }
systemctl start user@1000.service
runuser -u dev -- env XDG_RUNTIME_DIR=/run/user/1000 systemctl --user is-system-running --wait
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || refuse "cgroup v2 is not the only hierarchy"
grep -qw cpu "$user/cgroup.controllers" || refuse "the user manager has no cpu controller"
[ -r /proc/pressure/cpu ] || refuse "the kernel has no pressure information"
# A restored guest's clock is set forward: what is due by the calendar would then start at once.
systemctl stop '*.timer'
mkdir -p "$1"
sync
"#;

/// A saved machine.
#[derive(Debug, Clone)]
pub struct Snapshot {
    directory: PathBuf,
    hardware: Hardware,
    accelerator: Accelerator,
    emulator: Emulator,
}

impl Snapshot {
    /// The snapshot of the machine with the root `tree`, saved now unless it is in the folder `cache` already.
    ///
    /// The folder name of `tree` has to be another one whenever its contents are.
    pub fn ensure(
        cache: &Path,
        tree: &Path,
        hardware: Hardware,
        emulator: &Emulator,
    ) -> Result<Self> {
        fs::create_dir_all(cache)
            .with_context(|| format!("cannot create the cache folder {}", cache.display()))?;
        let recipe = Recipe::of(tree, hardware, emulator)?;
        let accelerator = probe::accelerator(cache, tree, emulator, &recipe.qemu)?;
        match Self::ensure_with(cache, tree, &recipe, accelerator, emulator) {
            Err(error) if accelerator == Accelerator::Kvm => {
                progress::say(&format!("machine: no boot with {accelerator}: {error:#}"));
                Self::ensure_with(cache, tree, &recipe, Accelerator::Tcg, emulator)
            }
            result => result,
        }
    }

    fn ensure_with(
        cache: &Path,
        tree: &Path,
        recipe: &Recipe,
        accelerator: Accelerator,
        emulator: &Emulator,
    ) -> Result<Self> {
        let snapshot = Self {
            directory: cache.join(recipe.name(accelerator)),
            hardware: recipe.hardware,
            accelerator,
            emulator: emulator.clone(),
        };
        if snapshot.directory.is_dir() {
            return Ok(snapshot);
        }
        let _lock = lock(cache)?;
        // Another run may have made it while we waited.
        if !snapshot.directory.is_dir() {
            let begin = Instant::now();
            progress::say(&format!(
                "machine: booting it with {accelerator} (once; cached afterwards)"
            ));
            snapshot.make(cache, tree)?;
            progress::say(&format!(
                "machine: booted and saved in {}",
                progress::seconds(begin.elapsed())
            ));
        }
        Ok(snapshot)
    }

    /// Boots and saves under a temporary name, so that a folder with the final name is whole.
    fn make(&self, cache: &Path, tree: &Path) -> Result<()> {
        let partial = self.directory.with_extension("partial");
        remove_partial(cache)?;
        fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        let made = self.make_in(tree, &partial).and_then(|()| {
            fs::rename(&partial, &self.directory).context("cannot rename the snapshot's folder")
        });
        if made.is_err() {
            // The error that matters is the one that we have.
            let _ = fs::remove_dir_all(&partial);
        }
        made.with_context(|| format!("making the machine's snapshot {}", self.directory.display()))
    }

    fn make_in(&self, tree: &Path, directory: &Path) -> Result<()> {
        let firmware = self.hardware.firmware;
        match firmware {
            Firmware::Kernel => disk::copy_kernel(tree, directory)?,
            Firmware::Uefi => esp::make(tree, directory)?,
        }
        firmware.copy_to(directory)?;
        disk::make_root(tree, directory, firmware)?;
        let payload = PayloadDisk::empty()?;
        let mut qemu = self.start(Purpose::Boot, directory, &payload)?;
        let settled = settle(&mut qemu, SETTLE).and_then(|()| match firmware {
            Firmware::Kernel => Ok(()),
            Firmware::Uefi => settle(&mut qemu, &esp::settle()),
        });
        settled.with_context(|| {
            format!(
                "the machine did not come up; its console:\n{}",
                qemu.log_tail()
            )
        })?;
        progress::say("machine: it runs, saving it");
        qemu.qmp.execute("stop", json!({}))?;
        report_transfers(&mut qemu)?;
        // QEMU runs in the folder: no path that a shell could misread.
        qemu.qmp
            .execute("migrate", json!({ "uri": format!("exec:cat > {STATE}") }))?;
        qemu.qmp.migrated(Instant::now() + TRANSFER)?;
        qemu.quit(Instant::now() + TRANSFER)
    }

    /// A machine that goes on where the saved one stopped. Its clock does so too, and its payload is not mounted.
    pub fn restore(&self, payload: &PayloadDisk) -> Result<Qemu> {
        let mut qemu = self.start(Purpose::Restore, &self.directory, payload)?;
        report_transfers(&mut qemu)?;
        qemu.qmp.execute(
            "migrate-incoming",
            json!({ "uri": format!("exec:cat {STATE}") }),
        )?;
        qemu.qmp
            .migrated(Instant::now() + TRANSFER)
            .with_context(|| {
                format!(
                    "cannot restore the machine from {} (remove that folder to have it made anew); its console:\n{}",
                    self.directory.display(),
                    qemu.log_tail()
                )
            })?;
        qemu.qmp.execute("cont", json!({}))?;
        Ok(qemu)
    }

    fn start(&self, purpose: Purpose, directory: &Path, payload: &PayloadDisk) -> Result<Qemu> {
        let arguments = command::machine(self.hardware, self.accelerator, purpose, &payload.path());
        Qemu::start(&self.emulator, &arguments, directory)
    }
}

/// Has the guest get ready by a script.
fn settle(qemu: &mut Qemu, script: &str) -> Result<()> {
    let mut output = Vec::new();
    let status = qemu.agent.run(
        &["bash", "-c", script, "settle", PAYLOAD_IN_GUEST],
        BOOT,
        &mut |bytes| {
            output.extend_from_slice(bytes);
        },
    )?;
    if status != 0 {
        bail!(
            "it is not as it should be (status {status}): {}",
            String::from_utf8_lossy(&output).trim()
        );
    }
    Ok(())
}

/// Makes QEMU tell how a transfer of state goes on.
fn report_transfers(qemu: &mut Qemu) -> Result<()> {
    qemu.qmp
        .execute(
            "migrate-set-capabilities",
            json!({ "capabilities": [{ "capability": "events", "state": true }] }),
        )
        .map(drop)
}

/// What a snapshot is made from.
#[derive(Debug)]
struct Recipe {
    image: String,
    hardware: Hardware,
    qemu: String,
    host_cpu: String,
    firmware: Vec<u8>,
}

impl Recipe {
    fn of(tree: &Path, hardware: Hardware, emulator: &Emulator) -> Result<Self> {
        let image = tree
            .file_name()
            .with_context(|| format!("{} is not an image's folder", tree.display()))?;
        Ok(Self {
            image: image.to_string_lossy().into_owned(),
            hardware,
            qemu: emulator.version()?,
            host_cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            firmware: hardware.firmware.contents()?,
        })
    }

    /// A name that is another one whenever the snapshot would be.
    fn name(&self, accelerator: Accelerator) -> String {
        let mut key = Key::new()
            .with(VERSION)
            .with(&self.image)
            .with(&self.qemu)
            .with(disk::AGENT)
            .with(disk::AGENT_SERVICE)
            .with(SETTLE)
            .with(PAYLOAD_IN_GUEST)
            .with(disk::PAYLOAD_SIZE.to_le_bytes())
            .with(&self.firmware)
            .with(esp::first_entry())
            .with(esp::settle());
        for argument in command::machine(
            self.hardware,
            accelerator,
            Purpose::Boot,
            Path::new("payload"),
        ) {
            key = key.with(argument);
        }
        if accelerator == Accelerator::Kvm {
            // The guest has found the features of this CPU.
            key = key.with(&self.host_cpu);
        }
        key.name()
    }
}

/// What tells one kind of CPU from another in /proc/cpuinfo.
fn cpu_model(cpuinfo: &str) -> String {
    ["model name", "microcode", "flags"]
        .iter()
        .filter_map(|key| cpuinfo.lines().find(|line| line.starts_with(key)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes what interrupted runs left; the caller holds the lock.
fn remove_partial(cache: &Path) -> Result<()> {
    let entries =
        fs::read_dir(cache).with_context(|| format!("cannot read {}", cache.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|suffix| suffix == "partial") {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// One maker of snapshots at a time; released when the file is dropped, also by a crash.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        progress::say("machine: another run boots it, waiting");
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            image: "trixie-machine-1".to_owned(),
            hardware: Hardware::default(),
            qemu: "QEMU 7.2".to_owned(),
            host_cpu: "a CPU".to_owned(),
            firmware: Vec::new(),
        }
    }

    #[test]
    fn each_ingredient_counts() {
        let tcg = |recipe: Recipe| recipe.name(Accelerator::Tcg);
        let name = tcg(recipe());
        assert_eq!(name, tcg(recipe()));
        assert_ne!(name, recipe().name(Accelerator::Kvm));
        let image = "trixie-machine-2".to_owned();
        assert_ne!(name, tcg(Recipe { image, ..recipe() }));
        let qemu = "QEMU 10.0".to_owned();
        assert_ne!(name, tcg(Recipe { qemu, ..recipe() }));
        let hardware = Hardware {
            memory: 4096,
            ..Hardware::default()
        };
        assert_ne!(
            name,
            tcg(Recipe {
                hardware,
                ..recipe()
            })
        );
        let firmware = vec![1];
        assert_ne!(
            name,
            tcg(Recipe {
                firmware,
                ..recipe()
            })
        );
    }

    #[test]
    fn the_hosts_cpu_counts_only_where_the_guest_sees_it() {
        let other = || Recipe {
            host_cpu: "another CPU".to_owned(),
            ..recipe()
        };
        assert_eq!(
            recipe().name(Accelerator::Tcg),
            other().name(Accelerator::Tcg)
        );
        assert_ne!(
            recipe().name(Accelerator::Kvm),
            other().name(Accelerator::Kvm)
        );
    }

    #[test]
    fn only_what_was_interrupted_is_removed() {
        let cache = tempfile::tempdir().unwrap();
        for name in ["0a.partial", "0b"] {
            fs::create_dir(cache.path().join(name)).unwrap();
            fs::write(cache.path().join(name).join(STATE), "").unwrap();
        }
        remove_partial(cache.path()).unwrap();
        assert!(!cache.path().join("0a.partial").exists());
        assert!(cache.path().join("0b").join(STATE).exists());
    }

    #[test]
    fn a_cpu_is_told_by_model_microcode_and_flags() {
        let cpuinfo = "processor\t: 0\nmodel name\t: X\ncpu MHz\t: 1\nflags\t: a b\n\nprocessor\t: 1\nmodel name\t: Y\n";
        assert_eq!(cpu_model(cpuinfo), "model name\t: X\nflags\t: a b");
    }
}
