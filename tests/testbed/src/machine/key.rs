//! Names for cached things: a hash over everything that they are made from. Pure.

/// FNV-1a with 128 bits over parts with their lengths, so that moving text from one part to the next changes it.
///
/// Our own and not the standard library's hasher because a name has to be the same from one compiler to the next.
/// Chance collisions are what it has to withstand, not an attacker.
#[derive(Debug, Clone)]
pub struct Key(u128);

impl Key {
    /// Of nothing yet.
    pub fn new() -> Self {
        // Offset basis and prime: https://datatracker.ietf.org/doc/draft-eastlake-fnv/ (FNV128).
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// With one more part.
    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.mix(&(part.len() as u64).to_le_bytes());
        self.mix(part);
        self
    }

    /// As a file name.
    pub fn name(&self) -> String {
        format!("{:032x}", self.0)
    }

    fn mix(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 ^= u128::from(byte);
            self.0 = self
                .0
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_test_vector() {
        // FNV-1a 128 of "a", from the draft's test vectors.
        let mut key = Key::new();
        key.mix(b"a");
        assert_eq!(key.name(), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn parts_are_kept_apart() {
        let name = |parts: &[&str]| {
            parts
                .iter()
                .fold(Key::new(), |key, part| key.with(part))
                .name()
        };
        assert_eq!(name(&["ab", "c"]), name(&["ab", "c"]));
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        assert_ne!(name(&["a"]), name(&["a", ""]));
        assert_ne!(name(&["a", "b"]), name(&["b", "a"]));
    }
}
