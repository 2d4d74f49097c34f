use proptest::prelude::*;

use super::{BadCpus, CpuSet};

fn set(text: &str) -> CpuSet {
    text.parse().expect("a CPU list")
}

#[test]
fn lists_as_the_kernel_prints_them() {
    for (text, cpus) in [
        ("\n", vec![]),
        ("0\n", vec![0]),
        ("0-3\n", vec![0, 1, 2, 3]),
        ("0,2-3,16", vec![0, 2, 3, 16]),
        ("8191", vec![8191]),
    ] {
        assert_eq!(set(text).iter().collect::<Vec<_>>(), cpus, "{text:?}");
        assert_eq!(set(text).to_string(), text.trim());
    }
    assert_eq!(set("3,1,2,0-1").to_string(), "0-3");
}

#[test]
fn what_is_no_list_is_named() {
    let part = |part: &str| BadCpus::Part {
        part: part.to_owned(),
    };
    for (text, error) in [
        ("0-", part("0-")),
        ("7-4", part("7-4")),
        ("0,,1", part("")),
        ("a", part("a")),
        ("+1", part("+1")),
        ("-1", part("-1")),
        ("0-8192", BadCpus::TooHigh(8192)),
        ("99999999999999999999999", part("99999999999999999999999")),
    ] {
        assert_eq!(text.parse::<CpuSet>(), Err(error), "{text:?}");
    }
}

#[test]
fn masks_of_more_than_one_word() {
    for (list, mask) in [
        ("", "0"),
        ("0", "1"),
        ("8-15", "ff00"),
        ("0-31", "ffffffff"),
        ("32", "1,00000000"),
        ("0,63-64", "1,80000000,00000001"),
    ] {
        assert_eq!(set(list).to_mask(), mask);
        assert_eq!(CpuSet::from_mask(mask), Ok(set(list)));
    }
}

#[test]
fn masks_as_a_wide_kernel_prints_them() {
    assert_eq!(
        CpuSet::from_mask("00000000,00000000,0000ff00\n"),
        Ok(set("8-15"))
    );
    for bad in ["", "fffffffff", "0x1", "1,,1", "+1", "g"] {
        assert!(CpuSet::from_mask(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn sets_are_compared_and_combined() {
    let (a, b) = (set("0-7"), set("4-11"));
    assert_eq!(a.and(&b), set("4-7"));
    assert_eq!(a.or(&b), set("0-11"));
    assert_eq!(a.without(&b), set("0-3"));
    assert!(set("5").is_subset(&a) && !b.is_subset(&a));
    assert_eq!((a.len(), a.first(), a.is_empty()), (8, Some(0), false));
}

proptest! {
    #[test]
    fn both_notations_are_read_back(cpus in proptest::collection::btree_set(0_u32..8192, 0..200)) {
        let set: CpuSet = cpus.into_iter().collect();
        prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set.clone()));
        prop_assert_eq!(CpuSet::from_mask(&set.to_mask()), Ok(set));
    }

    #[test]
    fn no_text_brings_it_down(text in "[0-9a-f,\\- \n]{0,40}") {
        let _ = text.parse::<CpuSet>();
        let _ = CpuSet::from_mask(&text);
    }
}
