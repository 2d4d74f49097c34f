//! On trees in temporary folders: what is found, written, kept and refused, and what a power cut leaves.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bench_profile::entries::Context;
use bench_profile::profile::Profile;
use tempfile::TempDir;

use super::next::{self, Way};
use super::*;
use crate::root::Root;

const ID: &str = "0123456789abcdef0123456789abcdef";

struct Tree(TempDir);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(tempfile::tempdir().expect("a folder"));
        tree.write(
            "etc/bench-profile/machine.toml",
            include_str!("../../../../config/machine.toml"),
        );
        tree.write("etc/machine-id", &format!("{ID}\n"));
        tree.write("proc/cmdline", "root=UUID=1 rw\n");
        tree
    }

    fn with_limine() -> Tree {
        let tree = Tree::new();
        tree.write("boot/limine.conf", LIMINE);
        tree
    }

    fn with_files() -> Tree {
        let tree = Tree::new();
        tree.write("efi/loader/loader.conf", "timeout 3\n");
        for version in ["6.11", "6.12"] {
            tree.write(
                &format!("efi/loader/entries/{ID}-{version}.conf"),
                &native(version),
            );
        }
        tree
    }

    fn with_grub() -> Tree {
        let tree = Tree::new();
        tree.write("boot/grub/grub.cfg", GRUB);
        let mut block = b"# GRUB Environment Block\nsaved_entry=x\n".to_vec();
        block.resize(1024, b'#');
        tree.write_bytes("boot/grub/grubenv", &block);
        tree
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        self.write_bytes(name, text.as_bytes());
    }

    fn write_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn names(&self, name: &str) -> Vec<String> {
        self.root().names(name).expect("a folder")
    }

    fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    fn regenerate(&self, options: &Options, disk: &mut impl Disk) -> Result<Done, EntriesError> {
        let now = UNIX_EPOCH + Duration::from_secs(1_796_095_800);
        regenerate(&self.root(), options, disk, now)
    }

    fn done(&self) -> Done {
        self.regenerate(&Options::default(), &mut Live)
            .expect("entries")
    }

    fn refused(&self) -> String {
        let error = self.regenerate(&Options::default(), &mut Live);
        error.expect_err("it is refused").to_string()
    }
}

const LIMINE: &str = "default_entry: 1\n/linux-cachyos\nprotocol: linux\npath: boot():/vmlinuz\ncmdline: root=UUID=1\n/Windows\nprotocol: efi\npath: boot():/w.efi\n";
const GRUB: &str = "if [ \"${next_entry}\" ] ; then\n  set next_entry=\nfi\n### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'linux-cachyos' --id x {\n\tlinux /vmlinuz-6.12-linux-cachyos root=UUID=1\n}\n### END /etc/grub.d/10_linux ###\n";

fn native(version: &str) -> String {
    format!(
        "title linux-cachyos\nversion {version}\nmachine-id {ID}\nsort-key arch\nlinux /{ID}/{version}/linux\noptions root=UUID=1\n"
    )
}

#[test]
fn a_preview_writes_nothing_and_shows_what_regenerate_writes() {
    for tree in [Tree::with_limine(), Tree::with_files(), Tree::with_grub()] {
        let before = walk(tree.0.path());
        let plan = plan(&tree.root(), &Options::default()).expect("a plan");
        let diff = plan.diff(Context::Usual);
        assert!(
            diff.contains("+") && diff.contains("bench_profile=multi-core"),
            "{diff}"
        );
        assert_eq!(walk(tree.0.path()), before);
        let done = tree.done();
        assert_eq!(done.plan.changes, plan.changes);
        for change in &plan.changes {
            assert_eq!(Some(&tree.read(&change.path)), change.after.as_ref());
        }
        // Doing it twice changes nothing, and keeps nothing.
        let again = tree.done();
        assert!(again.plan.changes.is_empty() && again.backup.is_none());
        assert_eq!(again.plan.diff(Context::Usual), "");
    }
}

/// Every file with its bytes.
fn walk(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push((path.display().to_string(), fs::read(&path).expect("a file"))),
        }
    }
    files.sort();
    files
}

#[test]
fn what_is_replaced_is_kept_with_its_mode_for_root_alone() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::with_grub();
    let mode = |name: &str| {
        fs::metadata(tree.path(name))
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    fs::set_permissions(
        tree.path("boot/grub/grub.cfg"),
        PermissionsExt::from_mode(0o600),
    )
    .expect("a mode");
    let backup = tree.done().backup.expect("a backup");
    assert_eq!(backup, "var/backups/bench-profile/20261201T033000Z");
    assert_eq!(tree.read(&format!("{backup}/boot/grub/grub.cfg")), GRUB);
    assert_eq!(mode(&format!("{backup}/boot/grub/grub.cfg")), 0o600);
    assert_eq!(mode("boot/grub/grub.cfg"), 0o600);
    assert_eq!(tree.names("boot/grub"), ["grub.cfg", "grubenv"]);
    // Another one at the same second.
    tree.write("boot/grub/grub.cfg", GRUB);
    assert_eq!(tree.done().backup.expect("a backup"), format!("{backup}-1"));
}

#[test]
fn limines_last_configuration_is_beside_it() {
    let tree = Tree::with_limine();
    tree.done();
    assert_eq!(tree.read("boot/limine.conf.bench.bak"), LIMINE);
    assert_eq!(tree.names("boot"), ["limine.conf", "limine.conf.bench.bak"]);
}

/// A disk whose power goes at one step.
struct Cut {
    steps_left: usize,
    /// What FAT may leave of a rename: neither name, or the new one alone.
    torn_rename: bool,
}

impl Cut {
    fn step(&mut self) -> bool {
        match self.steps_left.checked_sub(1) {
            Some(left) => {
                self.steps_left = left;
                false
            }
            None => true,
        }
    }
}

fn no_power<T>() -> io::Result<T> {
    Err(io::Error::other("the power is gone"))
}

impl Disk for Cut {
    fn create(&mut self, folder: &OwnedFd, name: &str, text: &[u8], mode: u32) -> io::Result<()> {
        let was_on = self.steps_left > 0;
        // Half of it, then all of it without the last step.
        if self.step() {
            if was_on || self.steps_left == 0 {
                let _ = Live.create(folder, name, &text[..text.len() / 2], mode);
            }
            return no_power();
        }
        Live.create(folder, name, text, mode)
    }

    fn rename(&mut self, folder: &OwnedFd, from: &str, to: &str) -> io::Result<()> {
        if self.step() {
            if self.torn_rename {
                Live.remove(folder, to)?;
            }
            return no_power();
        }
        Live.rename(folder, from, to)
    }

    fn remove(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        if self.step() {
            return no_power();
        }
        Live.remove(folder, name)
    }

    fn settle(&mut self, folder: &OwnedFd) -> io::Result<()> {
        if self.step() {
            return no_power();
        }
        Live.settle(folder)
    }
}

/// Cuts the power at each step until one run gets through, and looks at what is left each time.
fn cut_everywhere(make: impl Fn() -> Tree, boots: impl Fn(&Tree)) {
    for steps_left in 0.. {
        assert!(steps_left < 200, "it never ends");
        let tree = make();
        let mut disk = Cut {
            steps_left,
            torn_rename: false,
        };
        let result = tree.regenerate(&Options::default(), &mut disk);
        boots(&tree);
        // The next run, with power, completes it.
        let _ = tree.done();
        boots(&tree);
        assert!(tree.done().plan.changes.is_empty(), "step {steps_left}");
        for name in walk(&tree.path("")) {
            assert!(!name.0.contains("bench-new"), "{} is left", name.0);
        }
        if result.is_ok() {
            assert!(steps_left > 3, "the power was never cut");
            return;
        }
    }
}

#[test]
fn wherever_the_power_goes_limine_boots() {
    cut_everywhere(Tree::with_limine, |tree| {
        let text = tree.read("boot/limine.conf");
        // Whole: the old one, or the new one.
        assert!(
            text.starts_with("default_entry: 1\n/linux-cachyos\n"),
            "{text}"
        );
        assert!(text.ends_with("path: boot():/w.efi\n"), "{text}");
        let ours = bench_profile::entries::limine::benches(&text)
            .expect("it parses")
            .len();
        assert!([0, 3].contains(&ours), "{ours}");
    });
}

#[test]
fn wherever_the_power_goes_grub_boots() {
    cut_everywhere(Tree::with_grub, |tree| {
        let text = tree.read("boot/grub/grub.cfg");
        assert!(text.starts_with(GRUB), "{text}");
        let ours = bench_profile::entries::grub::benches(&text)
            .expect("it parses")
            .len();
        assert!([0, 3].contains(&ours), "{ours}");
    });
}

#[test]
fn wherever_the_power_goes_each_entry_is_whole_and_has_its_kernel() {
    let make = || {
        let tree = Tree::with_files();
        tree.done();
        // One kernel goes, one comes during a boot into a profile.
        fs::remove_file(tree.path(&format!("efi/loader/entries/{ID}-6.11.conf"))).expect("it goes");
        let dirty = native("6.13").replace("root=UUID=1", "root=UUID=1 bench_profile=unlimited");
        tree.write(&format!("efi/loader/entries/{ID}-6.13.conf"), &dirty);
        tree
    };
    cut_everywhere(make, |tree| {
        let names = tree.names("efi/loader/entries");
        for version in ["6.12", "6.13"] {
            assert!(names.contains(&format!("{ID}-{version}.conf")), "{names:?}");
        }
        for name in names.iter().filter(|name| name.ends_with(".conf")) {
            let text = tree.read(&format!("efi/loader/entries/{name}"));
            assert!(text.contains("\noptions root=UUID=1"), "{name}: {text}");
            assert!(text.ends_with('\n'), "{name}: {text}");
        }
    });
}

#[test]
fn a_rename_that_fat_tears_leaves_the_last_configuration_beside_it() {
    for steps_left in 0..40 {
        let tree = Tree::with_limine();
        let mut disk = Cut {
            steps_left,
            torn_rename: true,
        };
        if tree.regenerate(&Options::default(), &mut disk).is_ok() {
            return;
        }
        let there = fs::read_to_string(tree.path("boot/limine.conf"));
        let kept = fs::read_to_string(tree.path("boot/limine.conf.bench.bak"));
        let whole = |text: &io::Result<String>| {
            text.as_ref().is_ok_and(|text| {
                text.starts_with(LIMINE.split('/').next().expect("text"))
                    && text.ends_with("w.efi\n")
            })
        };
        assert!(
            whole(&there) || whole(&kept),
            "step {steps_left}: {there:?} {kept:?}"
        );
        assert!(
            tree.path("var/backups/bench-profile/20261201T033000Z/boot/limine.conf")
                .exists()
        );
    }
    panic!("no run got through");
}

/// A disk without room.
struct Full;

impl Disk for Full {
    fn create(&mut self, folder: &OwnedFd, name: &str, text: &[u8], mode: u32) -> io::Result<()> {
        if name.contains("limine") && name.ends_with("bench-new") {
            let _ = Live.create(folder, name, &text[..10], mode);
            return Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
        }
        Live.create(folder, name, text, mode)
    }
    fn rename(&mut self, folder: &OwnedFd, from: &str, to: &str) -> io::Result<()> {
        Live.rename(folder, from, to)
    }
    fn remove(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        Live.remove(folder, name)
    }
    fn settle(&mut self, folder: &OwnedFd) -> io::Result<()> {
        Live.settle(folder)
    }
}

#[test]
fn a_full_partition_is_left_as_it_was() {
    let tree = Tree::with_limine();
    let error = tree
        .regenerate(&Options::default(), &mut Full)
        .expect_err("it is full")
        .to_string();
    assert!(
        error.starts_with("/boot/limine.conf: to write it anew: "),
        "{error}"
    );
    assert!(
        error.contains("The file system is full: make room on it. Nothing was changed"),
        "{error}"
    );
    assert_eq!(tree.names("boot"), ["limine.conf"]);
    assert_eq!(tree.read("boot/limine.conf"), LIMINE);
}

#[test]
fn a_link_in_the_way_is_refused_and_what_it_points_to_is_safe() {
    let outside = tempfile::tempdir().expect("a folder");
    let theirs = outside.path().join("limine.conf");
    fs::write(&theirs, LIMINE).expect("a file");
    // The file itself: the link would be replaced, and what it points to stay as it was.
    let tree = Tree::new();
    tree.write("boot/x", LIMINE);
    for to in [theirs.as_path(), Path::new("x")] {
        symlink(to, tree.path("boot/limine.conf")).expect("a link");
        assert!(
            tree.refused()
                .contains("limine.conf: it is a symbolic link")
        );
        fs::remove_file(tree.path("boot/limine.conf")).expect("it goes");
    }
    assert_eq!(tree.read("boot/x"), LIMINE);
    assert_eq!(fs::read_to_string(&theirs).expect("a file"), LIMINE);
    // The folder.
    let tree = Tree::new();
    symlink(outside.path(), tree.path("boot")).expect("a link");
    assert!(tree.refused().starts_with("no boot loader was found"));
    // A name that we write to.
    let tree = Tree::with_limine();
    let victim = outside.path().join("victim");
    fs::write(&victim, "theirs").expect("a file");
    symlink(&victim, tree.path("boot/limine.conf.bench-new")).expect("a link");
    symlink(&victim, tree.path("boot/limine.conf.bench.bak")).expect("a link");
    tree.done();
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "theirs");
    // The backups.
    let tree = Tree::with_limine();
    fs::create_dir(tree.path("var")).expect("a folder");
    symlink(outside.path(), tree.path("var/backups")).expect("a link");
    assert!(tree.refused().contains("what is there could not be kept"));
    assert_eq!(tree.read("boot/limine.conf"), LIMINE);
}

#[test]
fn limines_file_is_found_whatever_its_letters_and_others_are_named() {
    let tree = Tree::new();
    tree.write("boot/LIMINE/Limine.CONF", LIMINE);
    tree.write("boot/limine.conf", LIMINE);
    let done = tree.done();
    assert_eq!(done.plan.changes[0].path, "boot/LIMINE/Limine.CONF");
    assert!(
        done.plan.notes[0].starts_with("/boot/limine.conf is not read"),
        "{:?}",
        done.plan.notes
    );
    assert_eq!(
        tree.names("boot/LIMINE"),
        ["Limine.CONF", "Limine.CONF.bench.bak"]
    );
    assert_eq!(tree.read("boot/limine.conf"), LIMINE);
}

#[test]
fn an_enrolled_configuration_is_changed_by_the_tool_alone() {
    let tree = Tree::with_limine();
    let program = [b"MZ++CONFIG_B2SUM_SIGNATURE++".as_slice(), &[b'7'; 128]].concat();
    tree.write_bytes("boot/EFI/limine/limine_x64.efi", &program);
    let hook = Options {
        hook: true,
        ..Options::default()
    };
    for options in [&Options::default(), &hook] {
        let error = tree
            .regenerate(options, &mut Live)
            .expect_err("Limine would not boot");
        assert!(
            error
                .to_string()
                .starts_with("/boot/EFI/limine/limine_x64.efi has the configuration's checksum"),
            "{error}"
        );
    }
    assert_eq!(tree.read("boot/limine.conf"), LIMINE);
    tree.write(
        "etc/default/limine",
        "# a comment\nENABLE_ENROLL_LIMINE_CONFIG=yes\n",
    );
    assert!(tree.refused().contains("limine-update"));
    tree.regenerate(&hook, &mut Live)
        .expect("the hook after it enrols it");
}

#[test]
fn the_loader_that_booted_is_meant_where_there_are_several() {
    let tree = Tree::with_limine();
    tree.write("boot/grub/grub.cfg", GRUB);
    assert!(tree.refused().contains("files of limine and grub are here"));
    let info: Vec<u8> = [7u8, 0, 0, 0]
        .into_iter()
        .chain("GRUB 2.12\0".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    tree.write_bytes(
        "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
        &info,
    );
    assert_eq!(tree.done().plan.loader, Loader::Grub);
    let named = Options {
        loader: Some(Loader::Limine),
        ..Options::default()
    };
    assert_eq!(
        tree.regenerate(&named, &mut Live)
            .expect("entries")
            .plan
            .loader,
        Loader::Limine
    );
    let absent = Options {
        loader: Some(Loader::SystemdBoot),
        ..Options::default()
    };
    let error = tree
        .regenerate(&absent, &mut Live)
        .expect_err("it is not here")
        .to_string();
    assert!(
        error.contains("systemd-boot is not here: loader/entries"),
        "{error}"
    );
    assert!(
        Tree::new()
            .refused()
            .starts_with("no boot loader was found")
    );
}

#[test]
fn entries_of_the_last_kernel_go_with_it_and_the_failure_is_told() {
    let tree = Tree::with_files();
    tree.done();
    for version in ["6.11", "6.12"] {
        fs::remove_file(tree.path(&format!("efi/loader/entries/{ID}-{version}.conf")))
            .expect("it goes");
    }
    assert!(tree.refused().contains("there is none"));
    assert!(tree.names("efi/loader/entries").is_empty());
}

#[test]
fn one_writes_at_a_time() {
    let tree = Tree::with_limine();
    tree.write("run/lock/boot-partition.lock", "");
    let theirs = fs::File::open(tree.path("run/lock/boot-partition.lock")).expect("a file");
    theirs.lock().expect("free");
    let hook = Options {
        hook: true,
        ..Options::default()
    };
    // The tool holds its lock while it runs hooks.
    tree.regenerate(&hook, &mut Live)
        .expect("a hook does not wait for it");
    let waits = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| tree.done());
        std::thread::sleep(Duration::from_millis(200));
        let waits = !waiting.is_finished();
        theirs.unlock().expect("held");
        waiting.join().expect("no panic");
        waits
    });
    assert!(waits, "it did not wait");
}

#[test]
fn files_that_are_no_text_are_told_and_left() {
    let tree = Tree::new();
    tree.write_bytes("boot/limine.conf", b"/linux-cachyos\xff\n");
    let error = tree.refused();
    assert!(
        error.contains("limine.conf: it is no UTF-8 text (byte 14)"),
        "{error}"
    );
    let tree = Tree::with_files();
    tree.write_bytes("efi/loader/entries/x.conf", b"title \xff\n");
    let done = tree.done();
    assert!(
        done.plan.notes[0].contains("x.conf: it is no UTF-8"),
        "{:?}",
        done.plan.notes
    );
    fs::remove_file(tree.path("efi/loader/entries/x.conf")).expect("it goes");
    fs::create_dir(tree.path("efi/loader/entries/folder.conf")).expect("a folder");
    tree.done();
}

#[test]
fn grub_is_told_of_the_next_boot_where_it_can_take_it_back() {
    let tree = Tree::with_grub();
    let root = tree.root();
    let no_entry = next::way(&root, Profile::MultiCore)
        .expect_err("none yet")
        .to_string();
    assert!(no_entry.contains("boot-entries regenerate"), "{no_entry}");
    tree.done();
    let way = next::way(&root, Profile::MultiCore).expect("a way");
    assert_eq!(
        way,
        Way::Grub("bench-profiles>bench-6.12-linux-cachyos-multi-core".into())
    );
    assert_eq!(next::pending(&root), None);
    next::tell_grub(&root, Some(way.entry())).expect("told");
    assert_eq!(next::pending(&root), Some(Profile::MultiCore));
    let block = fs::read(tree.path("boot/grub/grubenv")).expect("a file");
    assert_eq!(block.len(), 1024);
    next::tell_grub(&root, None).expect("taken back");
    assert_eq!(next::pending(&root), None);

    let mounted = |kind: &str| {
        tree.write(
            "proc/self/mountinfo",
            &format!("1 0 8:2 / / rw - {kind} /dev/sda2 rw\n"),
        );
        next::way(&root, Profile::MultiCore).map_err(|error| error.to_string())
    };
    assert!(mounted("ext4").is_ok());
    assert!(mounted("btrfs").expect_err("no").contains("is on btrfs"));
    fs::create_dir_all(tree.path("sys/dev/block/8:2/dm")).expect("a folder");
    assert!(
        mounted("ext4")
            .expect_err("no")
            .contains("is on a dm device")
    );
    fs::remove_file(tree.path("boot/grub/grubenv")).expect("it goes");
    let error = next::tell_grub(&root, None)
        .expect_err("no block")
        .to_string();
    assert!(
        error.contains("grub-editenv /boot/grub/grubenv create"),
        "{error}"
    );
}

#[test]
fn the_other_loaders_are_told_by_logind_or_not_at_all() {
    let tree = Tree::with_files();
    tree.done();
    tree.write("proc/sys/kernel/osrelease", "6.11\n");
    let way = next::way(&tree.root(), Profile::Unlimited).expect("a way");
    assert_eq!(way, Way::Logind(format!("{ID}-6.11-bench-unlimited.conf")));
    let tree = Tree::with_limine();
    tree.done();
    let error = next::way(&tree.root(), Profile::Unlimited).expect_err("it cannot");
    assert!(
        error.to_string().contains("Choose the entry in its menu"),
        "{error}"
    );
}

#[test]
fn without_a_machine_file_the_way_out_is_named() {
    let tree = Tree::with_limine();
    fs::remove_file(tree.path("etc/bench-profile/machine.toml")).expect("it goes");
    assert!(tree.refused().contains("bench plan"));
}
