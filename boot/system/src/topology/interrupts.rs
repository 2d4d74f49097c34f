//! How many numbered hardware interrupts each CPU took, of `/proc/interrupts`.

use std::collections::BTreeMap;

/// Sums the numbered lines (named ones, such as `LOC`, are no device's). Columns are named by the head
/// line, since offline CPUs have none.
pub fn per_cpu(text: &str) -> BTreeMap<u32, u64> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut sums: BTreeMap<u32, u64> = cpus.iter().map(|cpu| (*cpu, 0)).collect();
    for line in lines {
        let Some((name, counts)) = line.split_once(':') else {
            continue;
        };
        if name.trim().parse::<u32>().is_err() {
            continue;
        }
        for (cpu, count) in cpus.iter().zip(counts.split_whitespace()) {
            let Ok(count) = count.parse::<u64>() else {
                break;
            };
            *sums.entry(*cpu).or_default() += count;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_head_line() {
        let text = "           CPU0       CPU8\n  9:          5          0   IO-APIC   9-fasteoi   acpi\n 55:          2          3   PCI-MSIX nvme0q1\nLOC:        100        100   Local timer interrupts\nERR:          0\n";
        assert_eq!(per_cpu(text), BTreeMap::from([(0, 7), (8, 3)]));
        assert_eq!(per_cpu(""), BTreeMap::new());
    }
}
