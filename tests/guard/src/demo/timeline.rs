//! What happens, told as it happens, and kept for the table at the end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use zbus::block_on;

use super::report::short;
use crate::harness::guard::Guard;
use crate::harness::signals::{Heard, Recovered, Routed, Signal};

/// Between two looks at what the guard has said.
const LOOK: Duration = Duration::from_millis(50);

/// A route that was seen.
#[derive(Clone, Debug)]
struct Seen {
    at: f64,
    after_start: f64,
    routed: Routed,
    why: String,
    back: Option<(f64, Recovered)>,
}

/// The clock of the demo and what it saw.
#[derive(Debug)]
pub struct Timeline {
    begin: Instant,
    guard_start: Instant,
    told: usize,
    seen: Vec<Seen>,
}

impl Timeline {
    /// Begins now.
    pub fn new() -> Timeline {
        let now = Instant::now();
        Timeline {
            begin: now,
            guard_start: now,
            told: 0,
            seen: Vec::new(),
        }
    }

    /// Detection counts from now.
    pub fn guard_starts(&mut self) {
        self.guard_start = Instant::now();
    }

    /// Prints a line with the seconds since the beginning.
    pub fn say(&self, text: &str) {
        println!("{:6.1} s  {text}", self.begin.elapsed().as_secs_f64());
    }

    /// Tells what the guard says until `done` or until `patience` is over; whether it was done.
    pub fn wait(
        &mut self,
        guard: &Guard,
        patience: Duration,
        mut done: impl FnMut() -> Result<bool>,
    ) -> bool {
        self.wait_for(guard, patience, |_| done().unwrap_or(false).then_some(()))
            .is_some()
    }

    /// As [`Timeline::wait`] for a route that `pick` accepts, however long ago.
    pub fn wait_routed(
        &mut self,
        guard: &Guard,
        patience: Duration,
        pick: impl Fn(&Routed) -> bool,
    ) -> bool {
        self.wait_for(guard, patience, |seen| {
            seen.iter().any(|seen| pick(&seen.routed)).then_some(())
        })
        .is_some()
    }

    /// As [`Timeline::wait`] for the return of a process.
    pub fn wait_recovered(
        &mut self,
        guard: &Guard,
        patience: Duration,
        pid: u32,
    ) -> Option<Recovered> {
        self.wait_for(guard, patience, |seen| {
            // A return before its last route does not count.
            let last = seen.iter().rev().find(|seen| seen.routed.pid == pid)?;
            last.back.as_ref().map(|(_, back)| back.clone())
        })
    }

    fn wait_for<T>(
        &mut self,
        guard: &Guard,
        patience: Duration,
        mut found: impl FnMut(&[Seen]) -> Option<T>,
    ) -> Option<T> {
        let begin = Instant::now();
        loop {
            self.tell(guard);
            if let Some(found) = found(&self.seen) {
                return Some(found);
            }
            if begin.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn tell(&mut self, guard: &Guard) {
        let heard = guard.signals.heard();
        for Heard { at, signal } in heard.iter().skip(self.told) {
            let at_s = at.duration_since(self.begin).as_secs_f64();
            match signal {
                Signal::Routed(routed) => {
                    let why = why(guard, routed);
                    println!(
                        "{at_s:6.1} s  ROUTED  PID {} `{}`: {why}\n          from {}\n          to   {}",
                        routed.pid,
                        routed.command,
                        short(&routed.source),
                        short(&routed.destination)
                    );
                    self.seen.push(Seen {
                        at: at_s,
                        after_start: at.duration_since(self.guard_start).as_secs_f64(),
                        routed: routed.clone(),
                        why,
                        back: None,
                    });
                }
                Signal::Recovered(back) => {
                    println!(
                        "{at_s:6.1} s  BACK    PID {} in {} {}",
                        back.pid,
                        short(&back.destination),
                        if back.exact {
                            "(exactly where it came from)"
                        } else {
                            &back.note
                        }
                    );
                    if let Some(seen) = self
                        .seen
                        .iter_mut()
                        .rev()
                        .find(|seen| seen.routed.pid == back.pid)
                    {
                        seen.back = Some((at_s, back.clone()));
                    }
                }
                Signal::MoveFailed(failed) => {
                    println!("{at_s:6.1} s  FAILED  PID {}: {}", failed.pid, failed.text);
                }
            }
        }
        self.told = heard.len();
    }

    /// Everything that was routed.
    pub fn table(&self) -> String {
        let mut text =
            String::from("WHAT WAS DETECTED\n    when   after start      PID  what and why\n");
        for seen in &self.seen {
            let routed = &seen.routed;
            let _ = write!(
                text,
                "{:6.1} s      {:6.1} s  {:7}  `{}`: {}\n{:29}from {}\n{:29}to   {}\n",
                seen.at,
                seen.after_start,
                routed.pid,
                routed.command,
                seen.why,
                "",
                short(&routed.source),
                "",
                short(&routed.destination)
            );
            let end = match &seen.back {
                Some((at, back)) => format!("back at {at:.1} s in {}", short(&back.destination)),
                None => "ended there by itself".to_owned(),
            };
            let _ = writeln!(text, "{:29}{end}", "");
        }
        text.push('\n');
        text
    }
}

/// The reason in the guard's own words; a short-lived workload may be gone before one asks.
fn why(guard: &Guard, routed: &Routed) -> String {
    let asked =
        || -> Result<String> { Ok(block_on(guard.workload(&routed.workload)?.reason_text())?) };
    match asked() {
        Ok(text) if !text.is_empty() => format!("{}: {text}", routed.reason),
        _ => routed.reason.clone(),
    }
}
