//! Parsers of the other per-process files. Pure.

/// The user ids of a process (`Uid:` of `/proc/PID/status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uids {
    /// Who started it.
    pub real: u32,
    /// Whose rights it has.
    pub effective: u32,
    /// Whose rights it can take back.
    pub saved: u32,
    /// Whose rights it has for files.
    pub filesystem: u32,
}

impl Uids {
    /// The first id that is not `uid`, if any.
    pub fn other_than(&self, uid: u32) -> Option<u32> {
        [self.real, self.effective, self.saved]
            .into_iter()
            .find(|&id| id != uid)
    }
}

/// The value of `NAME:` in a `status` text. The first one: `Name:` is the only line that a process
/// chooses, it comes first, and the kernel escapes a newline in it.
pub(super) fn status_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

/// The four numbers of `Uid:`.
pub(super) fn uids(text: &str) -> Option<Uids> {
    let mut ids = status_field(text, "Uid")?
        .split_ascii_whitespace()
        .map(str::parse);
    let mut next = || ids.next()?.ok();
    Some(Uids {
        real: next()?,
        effective: next()?,
        saved: next()?,
        filesystem: next()?,
    })
}

/// The path of the unified hierarchy in a `/proc/PID/cgroup` text.
pub(super) fn unified_cgroup(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The arguments of a `cmdline`, without the empty ones at its end.
pub(super) fn split_argv(bytes: &[u8]) -> Vec<Box<str>> {
    let Some(last) = bytes.iter().rposition(|&b| b != 0) else {
        return Vec::new();
    };
    bytes[..=last]
        .split(|&b| b == 0)
        .map(|argument| String::from_utf8_lossy(argument).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_blanks_and_lose_the_padding() {
        let argv = |bytes: &[u8]| {
            split_argv(bytes)
                .iter()
                .map(|a| a.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(argv(b"vim\0make notes\0"), ["vim", "make notes"]);
        assert_eq!(argv(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(
            argv(b"nginx: worker process\0\0\0\0"),
            ["nginx: worker process"]
        );
        assert_eq!(argv(b"no end"), ["no end"]);
        assert_eq!(argv(b"\xff\0"), ["\u{fffd}"]);
        assert!(argv(b"").is_empty() && argv(b"\0\0").is_empty());
    }

    #[test]
    fn a_hybrid_machine_has_other_lines_too() {
        assert_eq!(
            unified_cgroup("9:name=systemd:/a\n8:pids:/\n0::/user.slice/x\n"),
            Some("/user.slice/x")
        );
        assert_eq!(unified_cgroup("8:pids:/\n"), None);
    }

    #[test]
    fn user_ids_are_four_numbers() {
        let text = "Name:\tUid:\\n\nUmask:\t0022\nUid:\t1000\t0\t0\t1000\n";
        let ids = uids(text).unwrap();
        assert_eq!(
            (ids.real, ids.effective, ids.saved, ids.filesystem),
            (1000, 0, 0, 1000)
        );
        assert_eq!(ids.other_than(1000), Some(0));
        assert_eq!(uids("Uid:\t1000\t0\n"), None);
    }
}
