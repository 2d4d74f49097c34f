//! Kinds of work.

use crate::budget::Budget;

/// A kind of work with a slice. The budget of a slice that the guard ships is in its unit file, and no
/// second copy is kept here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name: lower-case letters, digits and `_`, at most 32 bytes.
    pub name: String,
    /// Its slice, such as `heavy-workload.slice`.
    pub slice: String,
    /// What the settings say of its budget: of a class with a slice of the user's own.
    pub budget: Budget,
    /// Commands that are routed into it, beside those that rules name.
    pub patterns: Vec<String>,
    /// Where `patterns` come from: `FILE:LINE`, or a variable; empty without any.
    pub patterns_origin: String,
}

impl Class {
    /// A class of which nothing but its slice is said.
    pub fn new(name: &str, slice: &str) -> Class {
        Class {
            name: name.to_owned(),
            slice: slice.to_owned(),
            budget: Budget::default(),
            patterns: Vec::new(),
            patterns_origin: String::new(),
        }
    }
}

/// The longest class name, in bytes: scope names hold it and stay far below systemd's limit of 255.
pub const MAX_NAME: usize = 32;

/// Whether `name` can be a class: lower-case letters, digits and `_`, at most [`MAX_NAME`] bytes. No
/// dash, since it parts the fields of a scope's name.
pub fn is_class_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The slices above `slice`, outermost first, then itself: a dash nests (systemd.slice(5)), so
/// `heavy-workload.slice` is below `heavy.slice`.
pub fn slice_chain(slice: &str) -> Vec<String> {
    let stem = slice.strip_suffix(".slice").unwrap_or(slice);
    let mut chain: Vec<String> = stem
        .match_indices('-')
        .map(|(at, _)| format!("{}.slice", &stem[..at]))
        .collect();
    chain.push(format!("{stem}.slice"));
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_name_fits_into_a_scope_name() {
        assert!(is_class_name("heavy") && is_class_name("ci_2"));
        for bad in ["", "Heavy", "a-b", "a.b", "ä", &"a".repeat(33)] {
            assert!(!is_class_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_dash_nests() {
        assert_eq!(
            slice_chain("heavy-workload.slice"),
            ["heavy.slice", "heavy-workload.slice"]
        );
        assert_eq!(slice_chain("app.slice"), ["app.slice"]);
        assert_eq!(
            slice_chain("a-b-c.slice"),
            ["a.slice", "a-b.slice", "a-b-c.slice"]
        );
    }
}
