//! What a root tree consists of. Pure: the builder turns a recipe into a command.

use anyhow::{Context, Result};

/// Bumped when the builder itself changes what a tree contains.
const BUILDER_VERSION: u32 = 1;

/// What a scenario needs in every guest: a complete system and user manager, a bus, polkit, and tools to look with.
const COMMON: &[&str] = &[
    "systemd",
    "systemd-sysv",
    "systemd-coredump",
    "dbus",
    "dbus-user-session",
    "libpam-systemd",
    "polkitd",
    "udev",
    "procps",
    "util-linux",
    "iproute2",
    "xz-utils",
    "gzip",
    // A client that is not ours: what an agent written in Python does.
    "python3-dbus",
    // Its parser judges what `workload-guard metrics` prints.
    "python3-prometheus-client",
    // What a desktop app written in Python does.
    "python3-gi",
    // Shells whose completions are tried, and what reads manual pages.
    "bash-completion",
    "zsh",
    "fish",
    "man-db",
    "mandoc",
    // Another machine is reached by ssh, a container by machined.
    "openssh-server",
    "openssh-client",
    "systemd-container",
];

/// A real C build, for the demo: compiler, libc headers, make.
const COMPILER: &[&str] = &["gcc", "make", "libc6-dev"];

/// The kernel that the machine tier boots, with the means to build its initrd.
const KERNEL: &[&str] = &["linux-image-cloud-amd64", "initramfs-tools"];

/// The boot loaders that the machine tier boots through, and what they bring along for updates of the kernel. Not
/// grub-efi-amd64, whose script installs a boot loader; the guest does that itself.
const LOADERS: &[&str] = &[
    "systemd-boot",
    "grub2-common",
    "grub-efi-amd64-bin",
    "efibootmgr",
];

/// Has cgrulesengd, the peer of what routes by the program's name.
const PEER: &[&str] = &["cgroup-tools"];

/// What emulates the machine tier's hardware. The QEMU of Debian 12 and Ubuntu 22.04 runs breakpoints that the guest's
/// kernel has taken away again ("qemu-x86_64 booting with 8.0.0 still see int3", linux-kernel, July 2023): a guest that
/// turned SMT off and on died of it within 200 rounds, under this one it went through 700. The runner
/// still takes a machine that died of it for what it is.
const EMULATOR: &[&str] = &["qemu-system-x86"];

/// Users, names and quiet. `dev` (uid 1000) is whose session the product guards, `other` (uid 1001) the one whose
/// processes it must leave alone; both have a user manager from boot on.
const SETUP: &str = r#"
useradd --create-home --uid 1000 --user-group --shell /bin/bash dev
useradd --create-home --uid 1001 --user-group --shell /bin/bash other
mkdir -p /var/lib/systemd/linger
touch /var/lib/systemd/linger/dev /var/lib/systemd/linger/other
echo guest > /etc/hostname
printf '127.0.0.1 localhost\n127.0.1.1 guest\n' > /etc/hosts
rm -f /etc/resolv.conf
# A fixed identity: an unset one would make every boot a first boot.
printf '%.32s\n' "$(cat /proc/sys/kernel/random/uuid | tr -d -)" > /etc/machine-id
# Nothing may start on its own while a scenario measures.
systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  fstrim.timer systemd-tmpfiles-clean.timer
# A scenario that wants an sshd starts its own.
systemctl mask --quiet ssh.service ssh.socket
mkdir -p /etc/systemd/system-generators
ln -s /dev/null /etc/systemd/system-generators/systemd-ssh-generator
# A failure report needs the whole journal.
mkdir -p /etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\nForwardToConsole=no\n' \
  > /etc/systemd/journald.conf.d/testbed.conf
"#;

/// The source of a real C program, as Debian ships it, in /usr/src/lua5.4.
const LUA_SOURCE: &str = r#"
mkdir -p /usr/src/lua5.4
cd "$(mktemp -d)"
apt-get source --quiet --download-only lua5.4
tar -xf lua5.4_*.orig.tar.gz -C /usr/src/lua5.4 --strip-components=1 --no-same-owner
rm -rf "$PWD"
"#;

/// How much of a Debian a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// A system that boots.
    System,
    /// Only the packages' files and those of what they depend on, never set up: programs to run from the host.
    Files,
}

/// A root tree: a Debian suite, its packages, and scripts that run inside it at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Name of the image, unique.
    pub name: &'static str,
    /// Debian suite.
    pub suite: &'static str,
    /// What it is for.
    pub variant: Variant,
    /// Packages beyond the minimal base (for [`Variant::Files`]: all of them), recommendations left out.
    pub packages: Vec<&'static str>,
    /// Whether the suite's source packages can be fetched by `customize`.
    pub sources: bool,
    /// Scripts for `sh -eu`, run as root inside the tree, with network.
    pub customize: Vec<&'static str>,
}

impl Recipe {
    /// Every image that we know to build.
    pub fn all() -> Vec<Recipe> {
        vec![
            Self::plain("bookworm", "bookworm"),
            Self::with_build("trixie"),
            Self::plain("sid", "sid"),
            {
                let mut machine = Self::with_build("trixie-machine");
                machine.packages.extend(KERNEL);
                machine.packages.extend(LOADERS);
                machine.packages.extend(PEER);
                machine
            },
            Recipe {
                name: "emulator",
                suite: "trixie",
                variant: Variant::Files,
                packages: EMULATOR.to_vec(),
                sources: false,
                customize: vec![],
            },
        ]
    }

    /// The recipe of that name.
    pub fn named(name: &str) -> Result<Recipe> {
        Self::all()
            .into_iter()
            .find(|recipe| recipe.name == name)
            .with_context(|| {
                let names: Vec<_> = Self::all().iter().map(|recipe| recipe.name).collect();
                format!(
                    "no image is called {name:?}; there are {}",
                    names.join(", ")
                )
            })
    }

    fn plain(name: &'static str, suite: &'static str) -> Recipe {
        Recipe {
            name,
            suite,
            variant: Variant::System,
            packages: COMMON.to_vec(),
            sources: false,
            customize: vec![SETUP],
        }
    }

    fn with_build(name: &'static str) -> Recipe {
        let mut recipe = Self::plain(name, "trixie");
        recipe.packages.extend(COMPILER);
        recipe.sources = true;
        // First, while the tree has the host's name servers.
        recipe.customize.insert(0, LUA_SOURCE);
        recipe
    }

    /// Identifies the content: 16 hexadecimal digits that change with anything that changes the tree.
    pub fn fingerprint(&self) -> String {
        let content = format!("{BUILDER_VERSION}\0{self:?}");
        format!("{:016x}", fnv1a(content.as_bytes()))
    }

    /// Name of the image's directory in the cache.
    pub fn directory(&self) -> String {
        format!("{}-{}", self.name, self.fingerprint())
    }
}

/// 64-bit FNV-1a: the standard library's hasher may change between compilers, and a cache key must not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_fingerprint_is_stable_and_follows_every_field() {
        let base = Recipe::named("bookworm").unwrap();
        assert_eq!(base.fingerprint(), base.clone().fingerprint());
        assert_eq!(base.fingerprint().len(), 16);
        let mut variants = vec![base.clone(); 7];
        variants[1].name = "x";
        variants[2].suite = "sid";
        variants[3].packages.push("x");
        variants[4].sources = true;
        variants[5].customize.push("true");
        variants[6].variant = Variant::Files;
        let distinct: HashSet<_> = variants.iter().map(Recipe::fingerprint).collect();
        assert_eq!(distinct.len(), variants.len());
    }

    #[test]
    fn the_hash_is_the_published_fnv_1a() {
        // So that neither a compiler nor a refactoring rebuilds everyone's images.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Recipe::named("buster").unwrap_err().to_string();
        assert!(
            error.contains("buster") && error.contains("trixie-machine"),
            "{error}"
        );
    }

    #[test]
    fn the_container_images_carry_no_kernel_and_no_boot_loader() {
        for name in ["bookworm", "trixie", "sid"] {
            let recipe = Recipe::named(name).unwrap();
            let carried = recipe.packages.iter().find(|package| {
                ["linux-image", "systemd-boot", "grub"]
                    .iter()
                    .any(|stem| package.starts_with(stem))
            });
            assert_eq!(carried, None, "{name}");
        }
    }
}
