//! The interactive probe: what a person feels of a busy machine.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// One piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// When it was due, in seconds after the probe's start.
    pub at: f64,
    /// From when it was due until it was done, in milliseconds.
    pub ms: f64,
}

/// Runs for ever. Latency counts from when a piece was due, so that a stall that swallows several periods shows in
/// full; periods that were missed altogether are not made up for.
pub fn run(out: &Path, period: Duration, work: Duration) -> Result<()> {
    let file = File::create(out).with_context(|| format!("cannot write {}", out.display()))?;
    let mut file = BufWriter::new(file);
    let rounds = calibrate(work);
    super::ready(&[]);
    let begin = Instant::now();
    let mut due = begin + period;
    loop {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        piece(rounds);
        let latency = due.elapsed();
        writeln!(
            file,
            "{} {}",
            due.duration_since(begin).as_millis(),
            latency.as_micros()
        )?;
        file.flush()?;
        due += period;
        while due < Instant::now() {
            due += period;
        }
    }
}

/// How many rounds take so long: the fastest of a few tries, since whatever disturbs one makes it slower.
fn calibrate(work: Duration) -> u64 {
    const TRY: u64 = 20_000;
    let fastest = (0..10)
        .map(|_| {
            let begin = Instant::now();
            piece(TRY);
            begin.elapsed()
        })
        .min()
        .unwrap_or(work);
    let each = fastest.as_secs_f64() / TRY as f64;
    (work.as_secs_f64() / each).max(1.0) as u64
}

fn piece(rounds: u64) {
    let mut value = 1_u64;
    for round in 0..rounds {
        value = black_box(
            value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(round),
        );
    }
}

/// What a probe has written so far, to the last whole line.
pub fn read_latencies(path: &Path) -> Result<Vec<Latency>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Latency> {
    let (at, latency) = line
        .split_once(' ')
        .with_context(|| format!("the probe wrote {line:?}"))?;
    Ok(Latency {
        at: at.parse::<f64>()? / 1e3,
        ms: latency.parse::<f64>()? / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_waits_for_its_end() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("probe");
        fs::write(&path, "20 1500\n40 25")?;
        assert_eq!(read_latencies(&path)?, [Latency { at: 0.02, ms: 1.5 }]);
        Ok(())
    }
}
