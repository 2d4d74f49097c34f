//! Words with `*` for any characters, and how options match.

/// A word, in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// From a rule's text.
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    /// The word itself when it has no `*`.
    pub fn exact(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }

    /// Whether it is the whole of `word`.
    pub fn matches(&self, word: &str) -> bool {
        glob(self.0.as_bytes(), word.as_bytes())
    }

    /// As [`Pattern::matches`]; a long option also matches with `=VALUE`.
    pub fn matches_argument(&self, arg: &str) -> bool {
        self.matches(arg)
            || self.0.starts_with("--")
                && arg
                    .split_once('=')
                    .is_some_and(|(name, _)| self.matches(name))
    }

    /// The letter of a short option such as `-n`.
    pub fn short_option(&self) -> Option<char> {
        let mut chars = self.0.chars();
        match (chars.next(), chars.next(), chars.next()) {
            (Some('-'), Some(letter), None) if letter != '-' && letter != '*' => Some(letter),
            _ => None,
        }
    }
}

/// Linear in memory and, by going back to the last star only, free of exponential cases.
fn glob(pattern: &[u8], word: &[u8]) -> bool {
    let (mut p, mut w) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while w < word.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, w));
            p += 1;
        } else if p < pattern.len() && pattern[p] == word[w] {
            p += 1;
            w += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            w = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, word) in [
            ("a", "a"),
            ("a*", "a"),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*b*c", "axxbyyc"),
            ("*", ""),
        ] {
            assert!(Pattern::new(pattern).matches(word), "{pattern} {word}");
        }
        for (pattern, word) in [
            ("a", "ab"),
            ("a*", "ba"),
            ("*c", "abcd"),
            ("a*b*c", "axxc"),
            ("", "a"),
        ] {
            assert!(!Pattern::new(pattern).matches(word), "{pattern} {word}");
        }
        let hostile = "a".repeat(20_000);
        assert!(!Pattern::new("*a*a*a*a*b").matches(&hostile));
    }

    #[test]
    fn a_long_option_may_carry_its_value() {
        assert!(Pattern::new("--print").matches_argument("--print=cfg"));
        assert!(!Pattern::new("--print").matches_argument("--printer"));
        assert!(!Pattern::new("-p").matches_argument("-p=x"));
    }
}
