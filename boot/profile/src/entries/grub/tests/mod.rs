use super::*;
use crate::entries::fixture;
use crate::machine::Machine;

const DEBIAN: &str = include_str!("debian.cfg");

fn machine() -> Machine {
    Machine {
        kernel_entry_match: String::new(),
        masked_units: vec![
            "a.service".to_owned(),
            "dev-disk-by\\x2dlabel.swap".to_owned(),
        ],
        ..fixture::machine()
    }
}

fn request(machine: &Machine) -> Request<'_> {
    Request {
        machine,
        machine_id: None,
        own_line: "",
        uefi: true,
    }
}

fn new(text: &str) -> Result<Generated, EntryError> {
    regenerate(text, &request(&machine()))
}

#[test]
fn each_kernel_has_an_entry_for_each_profile_in_a_menu_of_its_own() {
    let text = new(DEBIAN).expect("entries").text;
    let (before, ours) = text
        .split_once("\n### BEGIN /etc/grub.d/42_bench_profiles ###\n")
        .expect("ours");
    assert_eq!(before, DEBIAN, "everything else is as it was");
    assert_eq!(ours.matches("menuentry '").count(), 6, "{ours}");
    assert!(
        !ours.contains("recovery") && !ours.contains("savedefault"),
        "{ours}"
    );
    let expected = "\tmenuentry 'Debian GNU/Linux, with Linux 6.12.6-amd64 benchmark multi-core' --class debian --class gnu-linux --class gnu --class os $menuentry_id_option 'bench-6.12.6-amd64-multi-core' {
\t\tload_video
\t\tinsmod gzio
\t\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\t\tinsmod part_gpt
\t\tinsmod ext2
\t\tsearch --no-floppy --fs-uuid --set=root 3f2a
\t\techo\t'Loading Linux 6.12.6-amd64 ...'
\t\tlinux\t/boot/vmlinuz-6.12.6-amd64 root=UUID=3f2a ro quiet dyndbg=\"file a.c +p\" bench_profile=multi-core nosmt isolcpus=managed_irq,8-15 nohz_full=8-15 rcu_nocbs=8-15 rcu_nocb_poll irqaffinity=0-7 systemd.cpu_affinity=0-7 systemd.unit=multi-user.target systemd.swap=0 systemd.mask=a.service 'systemd.mask=dev-disk-by\\x2dlabel.swap'
\t\techo\t'Loading initial ramdisk ...'
\t\tinitrd\t/boot/initrd.img-6.12.6-amd64
\t}
";
    assert!(ours.contains(expected), "{ours}");
    assert!(
        ours.contains(
            "--class debian --unrestricted $menuentry_id_option 'bench-6.1.0-28-amd64-single-core'"
        ),
        "{ours}"
    );
    assert_eq!(new(&text).expect("again").text, text);
}

#[test]
fn the_generator_prints_what_the_section_holds() {
    let machine = machine();
    let native = &DEBIAN[section(DEBIAN, NATIVE).expect("it")];
    let printed = generate(native, &request(&machine)).expect("entries").text;
    let text = new(DEBIAN).expect("entries").text;
    assert_eq!(&text[section(&text, GENERATOR).expect("ours")], printed);
    // An older one of ours is replaced where it is.
    let older = text
        .replace("bench-6.1.0-28", "bench-5.0")
        .replace("6.1.0-28", "5.0");
    let newer = older.replace(&older[section(&older, NATIVE).expect("it")], native);
    assert_eq!(new(&newer).expect("entries").text, text);
}

#[test]
fn entries_can_be_found_again() {
    let text = new(DEBIAN).expect("entries").text;
    let benches = benches(&text).expect("it parses");
    assert_eq!(benches.len(), 6);
    assert_eq!(
        benches[1].id,
        "bench-profiles>bench-6.12.6-amd64-multi-core"
    );
    let of =
        |kernel| crate::entries::of_profile(&benches, Profile::Unlimited, kernel).expect("one");
    assert_eq!(
        of("6.1.0-28-amd64").id,
        "bench-profiles>bench-6.1.0-28-amd64-unlimited"
    );
    assert_eq!(of("7.0").id, "bench-profiles>bench-6.12.6-amd64-unlimited");
    assert_eq!(super::benches("").expect("nothing"), []);
}

#[test]
fn what_grub_would_not_take_is_refused() {
    let native = |body: &str| format!("{}\n{body}\n{}\n", begin(NATIVE), end(NATIVE));
    for (body, why) in [
        ("menuentry 'a {\n}", "line 1: a quote is not closed"),
        (
            "\nmenuentry 'a' {\n linux /v\n",
            "line 2: a menuentry is not closed",
        ),
        ("menuentry 'a'\n{ }", "has no body"),
        ("menuentry 'a' { linux /v a; initrd /x\n}", "there is none"),
        ("menuentry 'a' { linux /v 'a\n b'\n}", "there is none"),
        ("menuentry 'a' { chainloader /x\n}", "there is none"),
    ] {
        let error = new(&native(body)).expect_err(body).to_string();
        assert!(error.contains(why), "{body:?}: {error}");
    }
    assert!(new("").is_err());
    // A section that somebody cut: what follows it is not ours to replace.
    let text = new(DEBIAN).expect("entries").text;
    let cut = text.replace(&end(GENERATOR), "") + &begin("99_mine") + "\n" + &end(GENERATOR);
    let error = new(&cut).expect_err("no end").to_string();
    assert!(error.contains("has no end of its own"), "{error}");
}

#[test]
fn a_title_with_quotes_stays_one_word() {
    let native =
        "menuentry 'It'\\''s \"mine\" } {' --id=x { # a comment }\n\tlinux /vmlinuz-6.1 ro\n}\n";
    let text = generate(native, &request(&machine()))
        .expect("entries")
        .text;
    assert!(
        text.contains(
            "menuentry 'It'\\''s \"mine\" } {, with Linux 6.1 benchmark unlimited' $menuentry"
        ),
        "{text}"
    );
    let entries = script::menuentries(&text).expect("it parses");
    assert_eq!(entries.len(), 3);
    assert_eq!(
        entries[0].title,
        "It's \"mine\" } {, with Linux 6.1 benchmark single-core"
    );
}

#[test]
fn where_grub_reads_files_it_is_given_none() {
    let native = "insmod blscfg\nblscfg\n";
    assert_eq!(
        generate(native, &request(&machine()))
            .expect("nothing")
            .text,
        ""
    );
}

#[test]
fn versions_are_10_linuxs() {
    for (path, expected) in [
        ("/boot/vmlinuz-6.12.6-amd64", "6.12.6-amd64"),
        ("/vmlinuz-linux-cachyos", "linux-cachyos"),
        ("/@/boot/kernel-6.1-gentoo", "6.1-gentoo"),
        ("(hd0,1)/vmlinuz", "vmlinuz"),
    ] {
        assert_eq!(version(path), expected, "{path}");
    }
}

#[test]
fn the_environment_keeps_its_size_and_its_other_variables() {
    let mut block = b"# GRUB Environment Block\nsaved_entry=a\\\\b\nnext_entry=old\n".to_vec();
    block.resize(1024, b'#');
    let set = |value| env::set(&block, env::NEXT, value).expect("it fits");
    let new = set(Some("bench-profiles>x"));
    assert_eq!(new.len(), 1024);
    assert_eq!(
        env::get(&new, env::NEXT).expect("a block").as_deref(),
        Some("bench-profiles>x")
    );
    assert_eq!(
        env::get(&new, "saved_entry").expect("a block").as_deref(),
        Some("a\\b")
    );
    assert_eq!(env::get(&set(None), env::NEXT), Ok(None));
    assert_eq!(
        env::set(&new, env::NEXT, Some("old")).map(|b| env::set(&b, env::NEXT, None)),
        Ok(Ok(set(None)))
    );
    env::set(&block, "x", Some(&"y".repeat(1000))).expect_err("it is full");
    for wrong in [&b""[..], &block[1..], &block[..1000]] {
        env::get(wrong, env::NEXT).expect_err("no block");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_comes_is_refused_or_done_once_and_for_all(
        words in proptest::collection::vec(
            "(menuentry|submenu|linux|linuxefi|'t it'|\\{|\\}|\n|;|#|\"|'|\\\\|\\$menuentry_id_option|--id|/vmlinuz-6|root=1|bench_profile=unlimited|[ -~]{0,6}) ?",
            0..40,
        ),
    ) {
        let text = format!("{}\n{}\n{}\n", begin(NATIVE), words.concat(), end(NATIVE));
        if let Ok(first) = new(&text) {
            proptest::prop_assert_eq!(&new(&first.text).expect("it was taken").text, &first.text);
            benches(&first.text).expect("ours can be read");
        }
        let _ = benches(&text);
        let _ = env::get(text.as_bytes(), env::NEXT);
    }

    #[test]
    fn an_environment_block_is_never_spoilt(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        value in "[ -~\n]{0,40}",
    ) {
        let mut block = [b"# GRUB Environment Block\n".to_vec(), bytes].concat();
        block.resize(1024, b'#');
        if let Ok(new) = env::set(&block, env::NEXT, Some(&value)) {
            proptest::prop_assert_eq!(new.len(), block.len());
            let got = env::get(&new, env::NEXT).expect("a block");
            proptest::prop_assert_eq!(got, Some(value));
        }
    }
}
