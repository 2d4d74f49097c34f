//! From runs to rows. Pure.

use std::fmt::Write;

use super::worker::Outcome;
use crate::machine::Machine;

/// Who was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sampler of this workspace.
    Guard,
    /// The same with adaptive routing and the shadow policy.
    Learning,
    /// The same as `Learning`, and every process is read at each look.
    Exhaustive,
    /// The Python original's loop, written anew.
    Python,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Guard => "guard",
            Side::Learning => "learning",
            Side::Exhaustive => "exhaustive",
            Side::Python => "python",
        }
    }
}

/// The runs of one side at one count.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    side: Side,
    processes: usize,
    groups: usize,
    runs: usize,
    ticks: u32,
    /// Median, least and most CPU time of a look over the runs, in milliseconds.
    cpu_ms: [f64; 3],
    /// Share of the kernel in it.
    system: f64,
    rss_kib: u64,
    rss_added_kib: u64,
    systemctl_calls: u32,
}

impl Row {
    /// From at least one run.
    pub fn new(side: Side, processes: usize, groups: usize, runs: &[Outcome]) -> Row {
        let mut cpu: Vec<f64> = runs
            .iter()
            .map(|run| cpu_ms(run.user_usec + run.system_usec, run.ticks))
            .collect();
        cpu.sort_by(f64::total_cmp);
        let system: u64 = runs.iter().map(|run| run.system_usec).sum();
        let total: u64 = runs.iter().map(|run| run.user_usec + run.system_usec).sum();
        let most = |value: fn(&Outcome) -> u64| runs.iter().map(value).max().unwrap_or(0);
        Row {
            side,
            processes,
            groups,
            runs: runs.len(),
            ticks: runs[0].ticks,
            cpu_ms: [cpu[cpu.len() / 2], cpu[0], cpu[cpu.len() - 1]],
            system: system as f64 / total.max(1) as f64,
            rss_kib: most(|run| run.rss_kib),
            rss_added_kib: most(|run| run.rss_kib.saturating_sub(run.rss_before_kib)),
            systemctl_calls: runs[0].systemctl_calls,
        }
    }
}

fn cpu_ms(usec: u64, ticks: u32) -> f64 {
    usec as f64 / 1000.0 / f64::from(ticks)
}

/// Where it was measured, and how again.
fn about(machine: &Machine) -> [String; 2] {
    [
        machine.headline(),
        "again: cargo run --release -p guard-benchmarks -- tick".to_owned(),
    ]
}

/// What a reader must know of the peer's figures.
fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes =
        vec!["CPU time per look: user and system, median (least to most) of the runs".to_owned()];
    if rows
        .iter()
        .any(|row| row.side == Side::Python && row.systemctl_calls == 0)
    {
        notes.push(
            "no systemd user manager here: the python side lacks its two systemctl calls, so its figures are a lower bound"
                .to_owned(),
        );
    }
    notes
}

/// For people.
pub fn table(machine: &Machine, rows: &[Row]) -> String {
    let mut text = String::new();
    for line in about(machine).into_iter().chain(notes(rows)) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(
        text,
        "\n{:>9}  {:<10}  {:>28}  {:>6}  {:>10}  {:>9}  {:>7}",
        "processes", "side", "CPU ms per look", "kernel", "RSS KiB", "added KiB", "times"
    );
    for row in rows {
        let [median, least, most] = row.cpu_ms;
        let guard = rows
            .iter()
            .find(|other| other.side == Side::Guard && other.processes == row.processes);
        let times = guard.map_or(0.0, |guard| median / guard.cpu_ms[0]);
        let _ = writeln!(
            text,
            "{:>9}  {:<10}  {:>28}  {:>5.0}%  {:>10}  {:>9}  {:>6.1}x",
            row.processes,
            row.side.name(),
            format!("{median:.3} ({least:.3} to {most:.3})"),
            row.system * 100.0,
            row.rss_kib,
            row.rss_added_kib,
            times
        );
    }
    for line in verdicts(rows) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The least factor between the sides at [`PEER_COUNT`] processes that is aimed at.
const PEER_FACTOR: f64 = 100.0;
const PEER_COUNT: usize = 1000;
/// The most that a look may cost at the first of these counts, as a multiple of the second.
const GROWTH: f64 = 2.0;
const GROWTH_COUNTS: (usize, usize) = (10_000, 100);

/// What the figures say of the aims, as far as those counts were measured.
fn verdicts(rows: &[Row]) -> Vec<String> {
    let cpu = |side: Side, count: usize| {
        let row = rows
            .iter()
            .find(|row| row.side == side && row.processes == count);
        row.map(|row| row.cpu_ms[0])
    };
    let word = |met: bool| if met { "met" } else { "MISSED" };
    let mut lines = Vec::new();
    if let (Some(guard), Some(python)) =
        (cpu(Side::Guard, PEER_COUNT), cpu(Side::Python, PEER_COUNT))
    {
        let factor = python / guard;
        lines.push(format!(
            "{PEER_COUNT} idle processes: {factor:.0} times less CPU than the python loop; aim {PEER_FACTOR}: {}",
            word(factor >= PEER_FACTOR)
        ));
    }
    if let (Some(guard), Some(learning), Some(exhaustive)) = (
        cpu(Side::Guard, PEER_COUNT),
        cpu(Side::Learning, PEER_COUNT),
        cpu(Side::Exhaustive, PEER_COUNT),
    ) {
        lines.push(format!(
            "{PEER_COUNT} idle processes: adaptive routing and shadow add {:.3} ms of CPU to a look; \
             they would add {:.3} ms if they had to read every process",
            learning - guard,
            exhaustive - guard
        ));
    }
    let (many, few) = GROWTH_COUNTS;
    if let (Some(at_many), Some(at_few)) = (cpu(Side::Guard, many), cpu(Side::Guard, few)) {
        let ratio = at_many / at_few;
        lines.push(format!(
            "{many} idle processes cost {ratio:.2} times what {few} cost; aim at most {GROWTH}: {}",
            word(ratio <= GROWTH)
        ));
    }
    lines
}

/// For programs.
pub fn tsv(machine: &Machine, rows: &[Row]) -> String {
    let mut text = String::new();
    let about = about(machine).into_iter().chain(notes(rows));
    for line in about.chain(verdicts(rows)) {
        let _ = writeln!(text, "# {line}");
    }
    text.push_str("processes\tgroups\tside\truns\tticks_per_run\tcpu_ms_median\tcpu_ms_min\tcpu_ms_max\tsystem_share\trss_kib\trss_added_kib\tsystemctl_calls\n");
    for row in rows {
        let [median, least, most] = row.cpu_ms;
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{median:.4}\t{least:.4}\t{most:.4}\t{:.2}\t{}\t{}\t{}",
            row.processes,
            row.groups,
            row.side.name(),
            row.runs,
            row.ticks,
            row.system,
            row.rss_kib,
            row.rss_added_kib,
            row.systemctl_calls
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(user_usec: u64, system_usec: u64, rss_kib: u64) -> Outcome {
        Outcome {
            processes: 100,
            ticks: 10,
            user_usec,
            system_usec,
            rss_before_kib: 1000,
            rss_kib,
            systemctl_calls: 0,
        }
    }

    #[test]
    fn a_row_is_the_median_of_its_runs() {
        let runs = [
            outcome(10_000, 30_000, 1500),
            outcome(5_000, 5_000, 1400),
            outcome(10_000, 10_000, 1600),
        ];
        let row = Row::new(Side::Guard, 100, 5, &runs);
        assert_eq!(row.cpu_ms, [2.0, 1.0, 4.0]);
        assert_eq!((row.rss_kib, row.rss_added_kib), (1600, 600));
        assert!((row.system - 45.0 / 70.0).abs() < 1e-9);
    }

    #[test]
    fn the_aims_are_judged_where_they_were_measured() {
        let row = |side, count, usec| Row::new(side, count, 5, &[outcome(usec, 0, 1500)]);
        let rows = [
            row(Side::Guard, 100, 100),
            row(Side::Guard, 1000, 100),
            row(Side::Python, 1000, 9_000),
            row(Side::Guard, 10_000, 150),
        ];
        let lines = verdicts(&rows);
        assert!(
            lines[0].contains("90 times") && lines[0].ends_with("MISSED"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("1.50 times") && lines[1].ends_with(": met"),
            "{lines:?}"
        );
        assert!(verdicts(&rows[..2]).is_empty());
    }

    #[test]
    fn the_file_says_when_the_peer_is_a_lower_bound() {
        let machine = Machine {
            date: "2000-01-01T00:00Z".to_owned(),
            cpu: "Some CPU".to_owned(),
            cpus: 2,
            kernel: "6.12".to_owned(),
            build: "release",
            load: "0.10".to_owned(),
        };
        let guard = Row::new(Side::Guard, 100, 5, &[outcome(1_000, 1_000, 1500)]);
        let mut python = Row::new(Side::Python, 100, 5, &[outcome(10_000, 10_000, 9000)]);
        let text = tsv(&machine, &[guard.clone(), python.clone()]);
        assert!(
            text.contains("lower bound") && text.contains("100\t5\tguard\t1\t10\t0.2000"),
            "{text}"
        );
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(
            rows.iter().all(|row| row.split('\t').count() == 12),
            "{text}"
        );
        assert!(table(&machine, &[guard.clone(), python.clone()]).contains("10.0x"));
        python.systemctl_calls = 2;
        assert!(!tsv(&machine, &[guard, python]).contains("lower bound"));
    }
}
