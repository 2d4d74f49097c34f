use super::*;
use crate::entries::MachineId;
use crate::entries::fixture::machine;

const ID: &str = "0123456789abcdef0123456789abcdef";
const KERNEL: &str = "0123456789abcdef0123456789abcdef-6.12.1-linux-cachyos";

fn native() -> String {
    format!(
        "# Boot Loader Specification type#1 entry\ntitle      CachyOS\nversion    6.12.1-linux-cachyos\nmachine-id {ID}\nsort-key   arch\noptions    root=UUID=1 rw\noptions    quiet\nlinux      /{ID}/6.12.1/linux\ninitrd     /{ID}/6.12.1/ucode\ninitrd     /{ID}/6.12.1/initrd\n"
    )
}

fn files(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn new(files: &BTreeMap<String, String>) -> Result<Files, EntryError> {
    let (machine, id) = (machine(), ID.parse::<MachineId>().expect("an id"));
    regenerate(files, &request(&machine, &id))
}

fn request<'a>(machine: &'a crate::machine::Machine, id: &'a MachineId) -> Request<'a> {
    Request {
        machine,
        machine_id: Some(id),
        own_line: "",
        uefi: true,
    }
}

fn carried_out(files: &BTreeMap<String, String>, new: Files) -> BTreeMap<String, String> {
    let mut files = files.clone();
    for (name, text) in new.changes {
        match text {
            Some(text) => files.insert(name, text),
            None => files.remove(&name),
        };
    }
    files
}

#[test]
fn each_profile_has_a_file_beside_the_kernels_own() {
    let before = files(&[(&format!("{KERNEL}+3-1.conf"), &native())]);
    let after = carried_out(&before, new(&before).expect("entries"));
    assert_eq!(after.len(), 4);
    let text = &after[&format!("{KERNEL}-bench-multi-core.conf")];
    let expected = format!(
        "{HEAD}\ntitle CachyOS benchmark multi-core\nversion 6.12.1-linux-cachyos\nmachine-id {ID}\nsort-key arch-bench\nlinux /{ID}/6.12.1/linux\ninitrd /{ID}/6.12.1/ucode\ninitrd /{ID}/6.12.1/initrd\noptions root=UUID=1 rw quiet bench_profile=multi-core nosmt isolcpus=managed_irq,8-15 "
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(after[&format!("{KERNEL}+3-1.conf")], native());
    assert_eq!(new(&after).expect("the same").changes, []);
    let found = benches(&after);
    assert_eq!(found.len(), 3);
    assert!(
        found
            .iter()
            .all(|bench| bench.kernel == "6.12.1-linux-cachyos")
    );
}

#[test]
fn entries_of_a_kernel_that_is_gone_go_too() {
    let before = files(&[
        (&format!("{KERNEL}.conf"), &native()),
        (
            &format!("{ID}-6.11-linux-cachyos.conf"),
            &native().replace("6.12.1", "6.11"),
        ),
    ]);
    let mut after = carried_out(&before, new(&before).expect("entries"));
    assert_eq!(after.len(), 8);
    after.remove(&format!("{ID}-6.11-linux-cachyos.conf"));
    let gone = new(&after).expect("entries");
    assert_eq!(gone.changes.len(), 3);
    assert!(
        gone.changes
            .iter()
            .all(|(name, text)| name.contains("6.11") && text.is_none())
    );
    // The last one, too, though nothing is left to be cloned.
    after.remove(&format!("{KERNEL}.conf"));
    assert!(matches!(new(&after), Err(EntryError::NoMatch { .. })));
    let (machine, id) = (machine(), ID.parse::<MachineId>().expect("an id"));
    assert_eq!(orphans(&after, &request(&machine, &id)).len(), 6);
}

#[test]
fn a_kernel_installed_during_a_boot_into_a_profile_gets_a_clean_line_again() {
    let dirty = native().replace(
        "root=UUID=1 rw",
        "root=UUID=1 rw bench_profile=unlimited systemd.mask=x.service",
    );
    let before = files(&[(&format!("{KERNEL}.conf"), &dirty)]);
    let new = new(&before).expect("entries");
    assert_eq!(
        new.changes[0].0,
        format!("{KERNEL}.conf"),
        "the normal entry comes first"
    );
    let clean = new.changes[0].1.clone().expect("text");
    assert!(
        clean.contains("\noptions root=UUID=1 rw quiet\nlinux "),
        "{clean}"
    );
    assert!(new.notes[0].contains(KERNEL));
}

#[test]
fn others_and_emergencies_are_left_alone() {
    let other = native().replace(ID, "fedcba9876543210fedcba9876543210");
    let windows = "title Windows\nefi /EFI/Microsoft/Boot/bootmgfw.efi\n";
    let rescue = native().replace(
        "title      CachyOS",
        "title CachyOS (0-rescue-linux-cachyos)",
    );
    let before = files(&[
        (
            "fedcba9876543210fedcba9876543210-6.1-linux-cachyos.conf",
            &other,
        ),
        ("windows-linux-cachyos.conf", windows),
        ("0-rescue.conf", &rescue),
        ("notes.txt", &native()),
        (&format!("{KERNEL}.CONF"), &native()),
    ]);
    let new = new(&before).expect("entries");
    let names: Vec<&str> = new.changes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["multi-core", "single-core", "unlimited"].map(|p| format!("{KERNEL}-bench-{p}.conf"))
    );
}

#[test]
fn without_a_sort_key_the_name_decides_and_ours_is_last() {
    let text = "title Arch\nlinux /vmlinuz-linux-cachyos\noptions root=UUID=1\n";
    let before = files(&[("arch.conf", text)]);
    let new = new(&before).expect("entries");
    assert_eq!(new.changes[0].0, "A-bench-multi-core-arch.conf");
    assert!(
        !new.changes[0]
            .1
            .as_ref()
            .expect("text")
            .contains("sort-key")
    );
}

#[test]
fn a_unified_image_and_grubs_variables_are_kept() {
    let image = "title U\nefi /EFI/Linux/linux-cachyos.efi\n";
    let fedora = "title F linux-cachyos\nversion 6\nlinux /vmlinuz\ninitrd /i $tuned_initrd\noptions $kernelopts $tuned_params\ngrub_users $grub_users\ngrub_hotkey f\n";
    let implied = "title G linux-cachyos\nlinux /vmlinuz\ngrub_class kernel\n";
    let before = files(&[("u.conf", image), ("f.conf", fedora), ("g.conf", implied)]);
    let after = carried_out(&before, new(&before).expect("entries"));
    let text = |name: &str| after[&format!("A-bench-unlimited-{name}.conf")].clone();
    assert!(text("u").contains("efi /EFI/Linux/linux-cachyos.efi\noptions bench_profile="));
    assert!(text("f").contains("options $kernelopts $tuned_params bench_profile="));
    assert!(text("f").contains("grub_users $grub_users\n") && !text("f").contains("hotkey"));
    assert!(text("g").contains("options $kernelopts bench_profile="));
}

#[test]
fn somebody_elses_file_is_not_overwritten() {
    let before = files(&[
        (&format!("{KERNEL}.conf"), &native()),
        (
            &format!("{KERNEL}-bench-unlimited.conf"),
            "title Mine\nefi /shell.efi\n",
        ),
    ]);
    let error = new(&before).expect_err("it is somebody's");
    assert_eq!(
        error,
        EntryError::Foreign(format!("{KERNEL}-bench-unlimited.conf"))
    );
}

#[test]
fn counters_are_no_part_of_a_name() {
    for (name, stem) in [
        ("a+3.conf", "a"),
        ("a+3-0.conf", "a"),
        ("a+b.conf", "a+b"),
        ("a+.conf", "a+"),
        ("+3.conf", "+3"),
        ("a+1+2.CONF", "a+1"),
        ("6.1.0+deb-1.conf", "6.1.0+deb-1"),
    ] {
        assert_eq!(entry::without_counters(name), stem, "{name}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_comes_is_refused_or_done_once_and_for_all(
        texts in proptest::collection::btree_map(
            "[a-zA-B0-9+.-]{0,12}(\\.conf)?",
            "((title|version|options|linux|efi|sort-key|initrd|machine-id|#|) ?[ -~\t]{0,30}(\r\n|\n)){0,8}(linux /linux-cachyos\n)?",
            0..6,
        ),
    ) {
        if let Ok(first) = new(&texts) {
            let after = carried_out(&texts, first);
            let again = new(&after).expect("what was written can be read");
            assert_eq!(again.changes, []);
        }
        let _ = benches(&texts);
    }
}
