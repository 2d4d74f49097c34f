//! Why a process is where it is. Told from the engine's own state, by the judgements that decisions come
//! from, so that an explanation and a decision cannot differ.

mod watched;
mod workload;

use std::fmt;

use super::{Engine, Tracked};
use crate::eligibility::{Facts, Intent, NeverMoved, never_moved};
use crate::holds::{Hold, Kind};
use crate::id::{Moment, ProcId};

/// A process that somebody asks about, as it is now.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who.
    pub id: ProcId,
    /// Its control group.
    pub cgroup: String,
    /// What decides whether it is one that is never moved.
    pub facts: Facts,
    /// The watched unit that it is in, if any.
    pub watched: Option<String>,
    /// What was noted when its workload was moved, if it is in one.
    pub noted: Option<Noted>,
}

/// What is known of a workload beside the engine.
#[derive(Clone, Debug)]
pub struct Noted {
    /// Why it was moved, in words.
    pub why: String,
    /// Where it came from: a unit, or a control group outside of the user manager.
    pub source: String,
    /// That is a scope which has ended since, and is made anew for the way back.
    pub source_ended: bool,
    /// How long its budget held it up so far, over all CPUs, in microseconds; none where the kernel does not tell.
    pub throttled: Option<u64>,
}

/// How a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// In a workload that comes back when it calms down.
    Routed,
    /// In a workload that stays until it is released.
    Placed,
    /// On its way, in either direction.
    Moving,
    /// It is routed at the next sample, unless that finds it changed.
    Due,
    /// Hot, but not for long enough.
    Counting,
    /// Watched, and nothing speaks for a move.
    Calm,
    /// It would be routed, but was tried or came back just now.
    Resting,
    /// A hold keeps it where it is.
    Held,
    /// The settings exclude it.
    Excluded,
    /// It is one that stays where it is.
    NeverMoved,
    /// Another user's.
    OutOfReach,
    /// Nothing that is watched holds it.
    NotWatched,
}

/// Why a process is where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// In a word.
    pub verdict: Verdict,
    /// A sentence each: why; what is missing for a change; who or what could bring one about.
    pub sentences: Vec<String>,
    /// The scope of its workload.
    pub unit: Option<String>,
    /// The rule that names its program.
    pub rule: Option<String>,
    /// The hold that keeps it.
    pub hold: Option<u64>,
    /// What is counted about it, if anything is.
    pub counters: Option<Counters>,
}

/// Samples in a row, and how many are needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counters {
    /// CPU at the last sample, in percent of one logical CPU: of the process, of the tree that it explains,
    /// or of the workload.
    pub cpu: Option<f64>,
    /// The threshold, likewise.
    pub threshold: f64,
    /// Samples in a row beyond it,
    pub samples: u32,
    /// and after how many something follows.
    pub needed: u32,
}

impl Explanation {
    fn new(verdict: Verdict) -> Explanation {
        Explanation {
            verdict,
            sentences: Vec::new(),
            unit: None,
            rule: None,
            hold: None,
            counters: None,
        }
    }

    fn say(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }

    fn saying(mut self, sentence: impl Into<String>) -> Explanation {
        self.say(sentence);
        self
    }

    /// Names the hold that keeps it.
    fn keep(&mut self, hold: &Hold) {
        self.hold = Some(hold.id);
        let told = hold.terms.told();
        self.say(match hold.kind {
            Kind::Pause => {
                format!("Routing is paused{told}; `workload-guard resume` ends it.")
            }
            _ => format!(
                "Hold {0} was taken{told}; `workload-guard unhold {0}` ends it.",
                hold.id
            ),
        });
    }
}

impl Engine {
    /// Why a process is where it is, and what would change that.
    pub fn explain(&self, about: &Question, now: Moment) -> Explanation {
        let inside = self.workload_in(&about.cgroup);
        if let Some(tracked) = inside.filter(|_| self.keeps(&about.cgroup, about.id)) {
            return self.explain_workload(tracked, about, now);
        }
        if let Some(explanation) = self.explain_way(about.id) {
            return explanation;
        }
        if let Some(why) = never_moved(&about.facts, Intent::Detection) {
            return explain_never(about, why);
        }
        let seen = self.process(about.id);
        let mut explanation = match (&about.watched, seen) {
            (None, _) => self.explain_unwatched(),
            (Some(unit), None) => Explanation::new(Verdict::Calm).saying(format!(
                "It is in {unit}, which is watched, and no sample has shown it yet: the next one comes within {}.",
                Seconds(self.settings.sampling.interval)
            )),
            (Some(_), Some(seen)) => self.explain_watched(&seen, now),
        };
        if let Some(tracked) = inside {
            explanation.sentences.insert(0, placed_above(tracked));
        }
        explanation
    }

    /// A process that a move in flight names.
    fn explain_way(&self, process: ProcId) -> Option<Explanation> {
        if !self.is_busy(process) {
            return None;
        }
        let back = self
            .recovering
            .values()
            .any(|recovering| recovering.root == process);
        Some(Explanation::new(Verdict::Moving).saying(match back {
            true => "Its workload is on its way back right now.",
            false => "It is being moved right now.",
        }))
    }

    fn explain_unwatched(&self) -> Explanation {
        let units = &self.settings.watch.parent_units;
        Explanation::new(Verdict::NotWatched)
            .saying(format!(
                "It is in nothing that is watched, so it is never routed by itself; watched is {}.",
                units.join(", ")
            ))
            .saying(
                "`workload-guard watch UNIT` has more watched; `workload-guard protect COMMAND` starts a command \
                 inside of what is.",
            )
    }

    /// The hold of a kind, the oldest if there are several.
    fn hold_of(&self, which: impl Fn(&Kind) -> bool) -> Option<&Hold> {
        self.holds.iter().find(|hold| which(&hold.kind))
    }
}

fn explain_never(about: &Question, why: NeverMoved) -> Explanation {
    if let Some(uid) = about.facts.foreign_uid {
        return Explanation::new(Verdict::OutOfReach).saying(format!(
            "It runs as user {uid}, and the guard moves its own user's processes alone."
        ));
    }
    let by_hand = match never_moved(&about.facts, Intent::Explicit) {
        Some(_) => "It cannot be placed by hand either.".to_owned(),
        None => format!(
            "You can place it all the same: `workload-guard attach {} --class CLASS`.",
            about.id
        ),
    };
    Explanation::new(Verdict::NeverMoved)
        .saying(format!("It is never moved by detection: {why}."))
        .saying(by_hand)
}

/// A process of a placed workload that is judged like any other.
fn placed_above(tracked: &Tracked) -> String {
    let workload = &tracked.workload;
    format!(
        "It is in the workload of process {}, which was placed in {}; what that starts is judged for itself.",
        workload.root, workload.class
    )
}

/// A length of time in whole seconds, at least one.
struct Seconds(std::time::Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64().ceil().max(1.0))
    }
}

/// CPU in percent of one logical CPU.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}%", self.0)
    }
}
