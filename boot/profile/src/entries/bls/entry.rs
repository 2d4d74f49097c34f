//! One file.

/// What the name of an entry's file ends with.
pub const EXTENSION: &str = ".conf";

/// A file's keys and values.
#[derive(Clone, Debug)]
pub struct Entry<'t> {
    text: &'t str,
    pairs: Vec<(&'t str, &'t str)>,
}

impl<'t> Entry<'t> {
    /// Reads one. Whatever has no key and value is nobody's.
    pub fn parse(text: &'t str) -> Entry<'t> {
        let pairs = text.lines().filter_map(pair).collect();
        Entry { text, pairs }
    }

    /// All of it, in the file's order.
    pub fn pairs(&self) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.pairs.iter().copied()
    }

    /// Every value of a key.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &'t str> {
        self.pairs()
            .filter(move |(known, _)| *known == key)
            .map(|(_, value)| value)
    }

    /// The value of a key; the last one counts.
    pub fn value(&self, key: &str) -> Option<&'t str> {
        self.values(key).last()
    }

    /// A Linux kernel's path, or a unified kernel image's; none for an entry that starts something else.
    pub fn kernel_path(&self) -> Option<&'t str> {
        let image = |path: &&str| path.to_ascii_lowercase().starts_with("/efi/linux/");
        self.value("linux")
            .or(self.value("uki"))
            .or(self.value("efi").filter(image))
            .filter(|path| !path.is_empty())
    }

    /// The command line: every `options` in a row.
    pub fn options(&self) -> Option<String> {
        let all: Vec<&str> = self.values("options").collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// What GRUB takes where there is none.
    pub fn implied_options(&self) -> String {
        let of_grub = self.pairs().any(|(key, _)| key.starts_with("grub_"));
        if of_grub { "$kernelopts" } else { "" }.to_owned()
    }

    /// The file with other options, in the place of the first.
    pub fn with_options(&self, options: &str) -> String {
        let mut text = String::new();
        let mut written = false;
        for line in self.text.split_inclusive('\n') {
            if pair(line).is_none_or(|(key, _)| key != "options") {
                text.push_str(line);
                continue;
            }
            if !written {
                let ending = &line[line.trim_end_matches(['\r', '\n']).len()..];
                text.push_str(&format!("options {options}{ending}"));
                written = true;
            }
        }
        text
    }
}

/// Key and value of a line.
fn pair(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    Some((key, value.trim_start()))
}

/// A file's name without its ending, whose letters have no case on FAT; none for another file.
pub fn stem(name: &str) -> Option<&str> {
    let (stem, ending) = name.split_at_checked(name.len().checked_sub(EXTENSION.len())?)?;
    ending.eq_ignore_ascii_case(EXTENSION).then_some(stem)
}

/// A file's name without its ending and without the counters of boots that are left: `NAME[+LEFT[-DONE]].conf`.
pub fn without_counters(name: &str) -> &str {
    let stem = stem(name).unwrap_or(name);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match stem.rsplit_once('+') {
        Some((before, counters)) if !before.is_empty() => {
            let (left, done) = counters.split_once('-').unwrap_or((counters, "0"));
            if digits(left) && digits(done) {
                before
            } else {
                stem
            }
        }
        _ => stem,
    }
}
