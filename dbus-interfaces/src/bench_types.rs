//! Wire types of `org.workloadguard.BenchPrep1`.

use serde::{Deserialize, Serialize};
use zvariant::{OwnedValue, Type, Value};

/// One setting of the machine, as Apply and Restore tell it. A value that is not there is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct KnobRow {
    /// A stable, short name, such as `governor:cpu8`.
    pub id: String,
    /// Where it is: a path, or in words what is no file.
    pub place: String,
    /// What was asked for.
    pub requested: String,
    /// What was read back.
    pub effective: String,
    /// What it was before the first Apply.
    pub original: String,
    /// `ok`, `differs`, `unsupported` or `overridden`.
    pub verdict: String,
    /// Why, where it is not `ok`.
    pub reason: String,
}

/// One line of Check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct CheckRow {
    /// A stable, short name, such as `smt`.
    pub id: String,
    /// `ok`, `note` or `differs`.
    pub level: String,
    /// What was seen, in words, with the way out where it differs.
    pub text: String,
}

/// One file of a boot loader that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct EntryRow {
    /// Its path.
    pub path: String,
    /// `written` or `removed`.
    pub action: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_the_contract() {
        assert_eq!(KnobRow::SIGNATURE.to_string(), "(sssssss)");
        assert_eq!(CheckRow::SIGNATURE.to_string(), "(sss)");
        assert_eq!(EntryRow::SIGNATURE.to_string(), "(ss)");
    }
}
