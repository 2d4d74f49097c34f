//! `/proc/interrupts` (kernel/irq/proc.c, arch/*/kernel/irq.c). Pure.

use std::collections::BTreeMap;

/// The counters of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// The CPUs of the columns: those that are online, so numbers may be missing.
    pub cpus: Vec<u32>,
    /// By label: `36`, `LOC`, `IPI0`.
    pub rows: BTreeMap<String, Row>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it counts.
    pub kind: Kind,
    /// One for each of [`Interrupts::cpus`]. The kernel's counters have 32 bits and wrap.
    pub counts: Vec<u32>,
    /// What the kernel says of it: chip, hardware number, trigger and the names of the handlers.
    pub source: String,
}

/// What a line counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An interrupt of a device, with a number of its own.
    Device,
    /// A numbered one that each CPU raises for itself: the timer and the performance counters of Arm and RISC-V.
    PerCpu,
    /// One without a number: between CPUs, the local timer, errors.
    Named,
}

/// A text that is no `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("/proc/interrupts, line {line}: {what}")]
pub struct BadInterrupts {
    /// From 1.
    pub line: usize,
    /// What was expected.
    pub what: &'static str,
}

impl Interrupts {
    /// Reads the whole text.
    ///
    /// # Errors
    ///
    /// No line with the CPUs comes first, or a numbered line is too short. What else has fewer numbers than there
    /// are CPUs (`ERR`, `MIS`) counts for the whole machine and is dropped.
    pub fn parse(text: &str) -> Result<Interrupts, BadInterrupts> {
        let bad = |line, what| BadInterrupts { line, what };
        let mut lines = text.lines().enumerate();
        let (_, header) = lines.next().ok_or(bad(1, "the line with the CPUs"))?;
        let cpus = header
            .split_ascii_whitespace()
            .map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect::<Option<Vec<u32>>>()
            .filter(|cpus| !cpus.is_empty())
            .ok_or(bad(1, "CPU0 and so on were expected"))?;
        let mut rows = BTreeMap::new();
        for (n, line) in lines {
            let Some((label, rest)) = line.split_once(':') else {
                continue;
            };
            let label = label.trim();
            let numbered = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
            let (counts, source) = counts(rest, cpus.len());
            if counts.len() < cpus.len() {
                if numbered {
                    return Err(bad(n + 1, "a count for each CPU was expected"));
                }
                continue;
            }
            let source = source
                .split_ascii_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let kind = match numbered {
                false => Kind::Named,
                true if is_per_cpu(&source) => Kind::PerCpu,
                true => Kind::Device,
            };
            rows.insert(
                label.to_owned(),
                Row {
                    kind,
                    counts,
                    source,
                },
            );
        }
        Ok(Interrupts { cpus, rows })
    }

    /// The count of a line on a CPU; none when there is no such line or column.
    pub fn count(&self, label: &str, cpu: u32) -> Option<u32> {
        let column = self.cpus.iter().position(|&other| other == cpu)?;
        self.rows.get(label)?.counts.get(column).copied()
    }
}

/// Up to `most` numbers from the start, and the rest.
fn counts(mut rest: &str, most: usize) -> (Vec<u32>, &str) {
    let mut counts = Vec::with_capacity(most);
    while counts.len() < most {
        let text = rest.trim_start();
        let end = text
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(text.len());
        // Old kernels print 64 bits for some lines; only differences count, so the lower half is enough.
        let Ok(count) = text[..end].parse::<u64>() else {
            break;
        };
        counts.push(count as u32);
        rest = &text[end..];
    }
    (counts, rest)
}

/// Whether the chip and its hardware number name an interrupt that each CPU has for itself: the private
/// peripherals of Arm's GIC (16 to 31, Arm IHI 0069), the local controllers of RISC-V and LoongArch.
fn is_per_cpu(source: &str) -> bool {
    let mut words = source.split_ascii_whitespace();
    let chip = words.next().unwrap_or_default();
    match chip {
        "GICv3" | "GICv2" | "GIC-0" | "GIC" => words
            .next()
            .and_then(|number| number.parse::<u32>().ok())
            .is_some_and(|number| (16..32).contains(&number)),
        "RISC-V" => words.next() == Some("INTC"),
        "CPUINTC" => true,
        _ => false,
    }
}
