//! A process in a workload: why that is there, and when it comes back.

use super::super::{Engine, Tracked};
use super::{Counters, Explanation, Percent, Question, Seconds, Verdict};
use crate::action::{Placement, RecoverCause};
use crate::holds::{Hold, Kind};
use crate::id::Moment;

impl Engine {
    pub(super) fn explain_workload(
        &self,
        tracked: &Tracked,
        about: &Question,
        now: Moment,
    ) -> Explanation {
        let workload = &tracked.workload;
        let (verdict, verb) = match workload.placement {
            Placement::Routed => (Verdict::Routed, "routed into"),
            Placement::Placed => (Verdict::Placed, "placed in"),
        };
        let mut explanation = Explanation::new(verdict);
        explanation.unit = Some(workload.unit.clone());
        let who = match workload.root == about.id {
            true => "It was".to_owned(),
            false => format!(
                "It belongs to the workload of process {}, which was",
                workload.root
            ),
        };
        let why = match &about.noted {
            Some(noted) => format!(": {}", noted.why),
            None => String::new(),
        };
        explanation.say(format!("{who} {verb} {}{why}.", workload.class));
        let coming = self.recovering.contains_key(&workload.unit);
        match (&tracked.owed, workload.placement) {
            _ if coming => {
                explanation.verdict = Verdict::Moving;
                explanation.say("It is on its way back right now.");
            }
            (Some(cause), _) => explanation.say(owed(tracked, cause, now)),
            (None, Placement::Routed) => self.say_calm(&mut explanation, tracked, now),
            (None, Placement::Placed) => self.say_end(&mut explanation, tracked),
        }
        if let Some(noted) = &about.noted {
            explanation.say(match noted.source_ended {
                true => format!(
                    "It came from {}, which has ended and is made anew on the way back; until then nobody else \
                     can have that name.",
                    noted.source
                ),
                false => format!("It came from {}.", noted.source),
            });
        }
        if let Some(noted) = &about.noted {
            explanation.say(held_up(noted.throttled, &workload.class));
        }
        if !coming {
            explanation.say(format!(
                "`workload-guard release {}` brings it back at once.",
                about.id
            ));
        }
        explanation
    }

    /// When a routed workload comes back.
    fn say_calm(&self, explanation: &mut Explanation, tracked: &Tracked, now: Moment) {
        let unit = &tracked.workload.unit;
        let recovery = &self.settings.recovery;
        explanation.counters = Some(Counters {
            cpu: tracked.cpu,
            threshold: recovery.cpu_threshold,
            samples: tracked.low_samples,
            needed: recovery.samples,
        });
        let holds_it = |kind: &Kind| match kind {
            Kind::Pause => true,
            Kind::Pin { unit: pinned, .. } => pinned == unit,
            Kind::Exempt { .. } | Kind::Lease { .. } => false,
        };
        if let Some(hold) = self.hold_of(holds_it) {
            explanation.say("It does not come back by itself, however calm it gets.");
            explanation.keep(hold);
            return;
        }
        explanation.say(format!(
            "It comes back once the whole workload stays below {} of one CPU for {} samples and {}.",
            Percent(recovery.cpu_threshold),
            recovery.samples,
            Seconds(recovery.dwell)
        ));
        explanation.say(match (tracked.cpu, tracked.low_for(now)) {
            (None, _) => "How much it uses is known after the next sample.".to_owned(),
            (Some(cpu), None) => format!(
                "At the last sample it used {}, so that has not begun.",
                Percent(cpu)
            ),
            (Some(cpu), Some(time)) => format!(
                "At the last sample it used {}: {} samples, and {} so far.",
                Percent(cpu),
                tracked.low_samples,
                Seconds(time)
            ),
        });
        if let Some(left) = tracked.rests_for(now) {
            explanation.say(format!(
                "An attempt to bring it back failed; the next one comes in {}.",
                Seconds(left)
            ));
        }
    }

    /// When a placed workload is released.
    fn say_end(&self, explanation: &mut Explanation, tracked: &Tracked) {
        let leases = |hold: &&Hold| matches!(&hold.kind, Kind::Lease { unit } if *unit == tracked.workload.unit);
        match self.holds.iter().find(leases) {
            Some(hold) => {
                explanation.say("It stays until its lease is over, however calm it gets.");
                explanation.keep(hold);
            }
            None => explanation.say("It stays until it is released, however calm it gets."),
        }
    }
}

/// What its budget cost it.
fn held_up(throttled: Option<u64>, class: &str) -> String {
    match throttled {
        None => format!(
            "How long the budget of {class} held it up is not known: the kernel does not tell (Linux 6.6 and later \
             do, where the user manager has the cpu controller)."
        ),
        Some(0) => format!("The budget of {class} has not held it up."),
        Some(usec) => format!(
            "The budget of {class} has held it up for {:.1} s so far, over all CPUs.",
            usec as f64 / 1e6
        ),
    }
}

fn owed(tracked: &Tracked, cause: &RecoverCause, now: Moment) -> String {
    let why = match cause {
        RecoverCause::LeaseEnded => "its lease is over",
        RecoverCause::Exempted => "a process in it was exempted from routing",
        RecoverCause::Released => "it was released",
        RecoverCause::Calm { .. } => "it calmed down",
        RecoverCause::Resumed => "an earlier recovery was cut off",
    };
    match tracked.rests_for(now) {
        Some(left) => format!(
            "It is to be brought back, since {why}; that failed, and is tried again in {}.",
            Seconds(left)
        ),
        None => format!("It is to be brought back, since {why}."),
    }
}
