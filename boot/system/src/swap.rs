//! Swap areas, of `/proc/swaps`, and whether memory can take what is in them.

/// One swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// The device or file.
    pub device: String,
    /// What is in it, in KiB.
    pub used_kib: u64,
    /// Its priority; negative where the kernel chose it.
    pub priority: i32,
}

/// The areas in use.
pub fn areas(swaps: &str) -> Vec<Area> {
    // Filename, Type, Size, Used, Priority.
    let area = |line: &str| {
        let mut words = line.split_whitespace();
        let device = unescaped(words.next()?);
        let used_kib = words.nth(2)?.parse().ok()?;
        let priority = words.next()?.parse().ok()?;
        Some(Area {
            device,
            used_kib,
            priority,
        })
    };
    swaps.lines().skip(1).filter_map(area).collect()
}

/// The kernel writes blanks and backslashes of a path in octal (`seq_file_path`).
fn unescaped(path: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .into_iter()
    .fold(path.to_owned(), |path, (from, to)| path.replace(from, to))
}

/// Why the areas cannot be emptied into memory; `None` where they can, or nobody can tell.
pub fn too_full(areas: &[Area], meminfo: &str) -> Option<String> {
    let used: u64 = areas.iter().map(|area| area.used_kib).sum();
    let available: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    (used > available).then(|| {
        format!(
            "{} MiB are in swap and memory has room for {} MiB: end what uses it and try again; nothing was changed",
            used / 1024,
            available / 1024
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_as_the_kernel_prints_them() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t8388604\t\t2048\t\t100\n/my\\040swap file\t\t1048572\t\t0\t\t-2\n";
        let areas = areas(text);
        assert_eq!(areas[0].device, "/dev/zram0");
        assert_eq!((areas[0].used_kib, areas[0].priority), (2048, 100));
        assert_eq!(
            (areas[1].device.as_str(), areas[1].priority),
            ("/my swap", -2)
        );
        assert_eq!(too_full(&areas, "MemAvailable:       2048 kB\n"), None);
        assert!(too_full(&areas, "MemAvailable:       2047 kB\n").is_some());
        assert_eq!(too_full(&areas, ""), None);
    }
}
