//! QEMU's command line. Pure: paths are names within the snapshot's folder, where QEMU runs.

use std::fmt;
use std::path::Path;

use super::firmware::Firmware;

/// The root disk, raw.
pub const DISK: &str = "disk.raw";
/// Memory and devices of the booted machine, as QEMU's migration stream.
pub const STATE: &str = "state";
/// The image's kernel.
pub const KERNEL: &str = "vmlinuz";
/// The image's initial RAM disk.
pub const INITRD: &str = "initrd.img";
/// The agent's unit in the guest; named on the kernel's command line instead of being enabled on the disk.
pub const AGENT_UNIT: &str = "workload-guard-agent.service";

/// The virtual hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// Memory in MiB.
    pub memory: u32,
    /// Physical cores, each with two hardware threads.
    pub cores: u32,
    /// What starts the kernel.
    pub firmware: Firmware,
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            memory: 2048,
            cores: 4,
            firmware: Firmware::Kernel,
        }
    }
}

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's CPU.
    Kvm,
    /// Software emulation, some ten times slower, on any host.
    Tcg,
}

impl Accelerator {
    fn option(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            // One host thread for each virtual CPU, so that the guest's CPUs run side by side.
            Self::Tcg => "tcg,thread=multi",
        }
    }

    fn cpu(self) -> &'static str {
        match self {
            Self::Kvm => "max",
            // The emulated CPU calls itself an AMD one, which has hardware threads only with topoext.
            Self::Tcg => "max,topoext=on",
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kvm => "KVM",
            Self::Tcg => "software emulation",
        })
    }
}

/// What a QEMU is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To boot from the disk and write to it.
    Boot,
    /// To go on from the saved state; writes to the disk are thrown away at the end.
    Restore,
}

/// The arguments for a whole machine; `payload` is the payload's disk.
///
/// stdin is to be a socket for the agent, stdout one for the monitor, stderr a file: QEMU's messages and the
/// guest's console are appended to it.
pub fn machine(
    hardware: Hardware,
    accelerator: Accelerator,
    purpose: Purpose,
    payload: &Path,
) -> Vec<String> {
    let root = match purpose {
        Purpose::Boot => format!("file={DISK},if=none,id=root,format=raw"),
        Purpose::Restore => format!("file={DISK},if=none,id=root,format=raw,snapshot=on"),
    };
    // UEFI of QEMU finds only disks that are in the boot order, and GRUB's modules are on this one.
    let root_device = match hardware.firmware {
        Firmware::Kernel => "virtio-blk-pci,drive=root",
        Firmware::Uefi => "virtio-blk-pci,drive=root,bootindex=2",
    };
    // QEMU's option syntax: a comma in a value is doubled.
    let payload = payload.display().to_string().replace(',', ",,");
    let mut arguments = base(hardware, accelerator);
    if hardware.firmware == Firmware::Kernel {
        arguments.extend(words(&["-kernel", KERNEL, "-initrd", INITRD]));
        arguments.extend(words(&["-append", &kernel_command_line()]));
    }
    arguments.extend(words(&["-drive", &root, "-device", root_device]));
    arguments.extend(words(&[
        "-drive",
        &format!("file={payload},if=none,id=payload,format=raw,readonly=on"),
        "-device",
        "virtio-blk-pci,drive=payload",
    ]));
    arguments.extend(words(&[
        "-chardev",
        "socket,id=agent,fd=0",
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=agent,name=org.workloadguard.agent",
    ]));
    if hardware.firmware == Firmware::Uefi {
        // Behind the other disks, which keep their names.
        arguments.extend(Firmware::uefi(purpose));
    }
    if purpose == Purpose::Restore {
        arguments.extend(words(&["-incoming", "defer"]));
    }
    arguments
}

/// The arguments for a kernel without any disk: it boots and, with nothing to go on with, panics and resets,
/// which ends QEMU. What gets there has memory management, interrupts, timers and all CPUs at work.
pub fn kernel_only(hardware: Hardware, accelerator: Accelerator) -> Vec<String> {
    let mut arguments = base(hardware, accelerator);
    arguments.extend(words(&["-kernel", KERNEL]));
    arguments.extend(words(&["-append", "console=ttyS0 quiet panic=-1"]));
    arguments
}

fn base(hardware: Hardware, accelerator: Accelerator) -> Vec<String> {
    let Hardware { memory, cores, .. } = hardware;
    let threads = cores * 2;
    words(&[
        "-no-user-config",
        "-nodefaults",
        "-display",
        "none",
        "-nic",
        "none",
        // A guest that panics ends QEMU (with panic=-1), so that nobody waits for it. See `reboot`.
        "-no-reboot",
        "-M",
        "q35",
        "-accel",
        accelerator.option(),
        "-cpu",
        accelerator.cpu(),
        "-smp",
        &format!("{threads},sockets=1,cores={cores},threads=2"),
        "-m",
        &memory.to_string(),
        "-chardev",
        "socket,id=monitor,fd=1",
        "-mon",
        "chardev=monitor,mode=control",
        "-chardev",
        "file,id=console,path=/dev/fd/2,append=on",
        "-serial",
        "chardev:console",
    ])
}

fn kernel_command_line() -> String {
    // psi=1: kernels may be built with pressure accounting off by default.
    // tsc=reliable: an emulated CPU that the host does not run for a while looks like a bad clock, and the
    // kernel would fall back to a slow one in the middle of a measurement.
    format!(
        "root=/dev/vda rw console=ttyS0 quiet panic=-1 psi=1 tsc=reliable \
         systemd.unified_cgroup_hierarchy=1 systemd.wants={AGENT_UNIT}"
    )
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(accelerator: Accelerator, purpose: Purpose) -> String {
        machine(Hardware::default(), accelerator, purpose, Path::new("p")).join(" ")
    }

    #[test]
    fn a_restored_machine_is_the_booted_one_but_for_disk_writes() {
        // The migration stream fits only a machine with the same devices.
        let booted = line(Accelerator::Tcg, Purpose::Boot);
        let restored = line(Accelerator::Tcg, Purpose::Restore);
        assert_eq!(
            restored,
            booted.replace("id=root,format=raw", "id=root,format=raw,snapshot=on")
                + " -incoming defer"
        );
    }

    #[test]
    fn a_machine_with_firmware_boots_by_itself_and_keeps_its_disks_names() {
        let line = |purpose| {
            let hardware = Hardware {
                firmware: Firmware::Uefi,
                ..Hardware::default()
            };
            machine(hardware, Accelerator::Tcg, purpose, Path::new("p")).join(" ")
        };
        let booted = line(Purpose::Boot);
        assert!(
            !booted.contains("-kernel") && !booted.contains("-append"),
            "{booted}"
        );
        let disks: Vec<_> = ["drive=root", "drive=payload", "drive=esp"]
            .iter()
            .map(|disk| booted.find(disk).unwrap())
            .collect();
        assert!(disks.is_sorted(), "{booted}");
        // All that the guest writes to is thrown away: disk, partition, variables.
        assert_eq!(line(Purpose::Restore).matches("snapshot=on").count(), 3);
    }

    #[test]
    fn each_core_has_two_threads() {
        let line = line(Accelerator::Tcg, Purpose::Boot);
        assert!(
            line.contains("-smp 8,sockets=1,cores=4,threads=2 -m 2048 "),
            "{line}"
        );
        assert!(
            line.contains("-accel tcg,thread=multi -cpu max,topoext=on "),
            "{line}"
        );
    }

    #[test]
    fn kvm_gets_the_hosts_cpu() {
        let line = line(Accelerator::Kvm, Purpose::Boot);
        assert!(line.contains("-accel kvm -cpu max -smp"), "{line}");
    }

    #[test]
    fn a_comma_in_a_path_is_doubled() {
        let arguments = machine(
            Hardware::default(),
            Accelerator::Tcg,
            Purpose::Boot,
            Path::new("/a,b"),
        );
        assert!(
            arguments.contains(&"file=/a,,b,if=none,id=payload,format=raw,readonly=on".to_owned())
        );
    }

    #[test]
    fn the_kernel_alone_has_no_disk() {
        let line = kernel_only(Hardware::default(), Accelerator::Kvm).join(" ");
        assert!(
            !line.contains("-drive") && !line.contains("-initrd"),
            "{line}"
        );
        assert!(
            line.contains("-no-reboot") && line.contains("panic=-1"),
            "{line}"
        );
    }
}
