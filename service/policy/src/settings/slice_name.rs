//! Names of slices, by systemd's rules.

use crate::class::slice_chain;

/// systemd's `UNIT_NAME_MAX`, in bytes.
const MAX_BYTES: usize = 255;

/// What a slice's name is, for messages.
pub const EXPECTED: &str = "the name of a slice unit, such as \"app.slice\"";

/// Whether `name` can be a slice: systemd's `unit_name_is_valid` and `slice_name_is_valid`. No empty
/// part between dashes, and no `@`, since slices are never instances of a template.
pub fn is_slice_name(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".slice") else {
        return false;
    };
    if stem == "-" {
        return true;
    }
    name.len() <= MAX_BYTES
        && stem.split('-').all(|part| !part.is_empty())
        && stem
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b":-_.\\".contains(&b))
}

/// Whether `inner` is `outer` or is nested in it. `-.slice` holds all.
pub fn holds(outer: &str, inner: &str) -> bool {
    outer == "-.slice" || outer == inner || slice_chain(inner).iter().any(|slice| slice == outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slices_are_slices() {
        for good in [
            "app.slice",
            "protected-workload.slice",
            "-.slice",
            "a_b:c.d\\x2d.slice",
        ] {
            assert!(is_slice_name(good), "{good}");
        }
        for bad in [
            "",
            ".slice",
            "app",
            "app.scope",
            "app.service",
            "-app.slice",
            "app-.slice",
            "a--b.slice",
            "a@b.slice",
            "a b.slice",
            "a/b.slice",
            "ä.slice",
        ] {
            assert!(!is_slice_name(bad), "{bad}");
        }
        assert!(!is_slice_name(&format!("{}.slice", "a".repeat(250))));
    }

    #[test]
    fn a_slice_holds_what_is_nested_in_it() {
        assert!(holds("heavy.slice", "heavy-workload.slice"));
        assert!(holds("heavy.slice", "heavy.slice"));
        assert!(holds("-.slice", "app.slice"));
        assert!(!holds("heavy-workload.slice", "heavy.slice"));
        assert!(!holds("heav.slice", "heavy.slice"));
    }
}
