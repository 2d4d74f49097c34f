//! A watched process: what detection makes of it.

use super::super::stay::Stay;
use super::super::{Engine, MAX_WORKLOADS, Seen};
use super::{Counters, Explanation, Percent, Seconds, Verdict};
use crate::action::Why;
use crate::holds::Kind;
use crate::id::{Moment, ProcId};

impl Engine {
    pub(super) fn explain_watched(&self, seen: &Seen, now: Moment) -> Explanation {
        let mut explanation = match self.judge(seen) {
            Ok(why) => self.explain_due(seen, &why),
            Err(stay) => self.explain_stay(seen, &stay, now),
        };
        if let Some(pause) = self.hold_of(|kind| *kind == Kind::Pause) {
            let without = std::mem::take(&mut explanation.sentences);
            explanation.verdict = Verdict::Held;
            explanation.keep(pause);
            explanation.say("Without that:");
            explanation.sentences.extend(without);
        }
        explanation.rule = seen.known.as_ref().map(|known| known.rule.to_string());
        explanation.counters = Some(self.counters(seen));
        explanation
    }

    /// What [`Engine::detect`] would make of it.
    fn judge(&self, seen: &Seen) -> Result<(String, Why), Stay> {
        if let Some(stay) = self.stays_alone(seen) {
            return Err(stay);
        }
        let tree = self.tree_load(&[seen.id.pid]).remove(&seen.id.pid);
        self.stays_among(seen, &self.moving_now(), tree)
    }

    fn explain_due(&self, seen: &Seen, (class, why): &(String, Why)) -> Explanation {
        let goes = |other: &Seen| self.judge(other).is_ok();
        if let Some(other) = self.carrier(seen, &self.moving_now(), goes) {
            return Explanation::new(Verdict::Moving).saying(format!(
                "Process {}, which it descends from, takes it along into another class.",
                other.id
            ));
        }
        let because = match why {
            Why::KnownHeavy { .. } => self.rule_words(seen),
            _ => self.counted_words(seen),
        };
        if self.load() >= MAX_WORKLOADS {
            return Explanation::new(Verdict::Resting)
                .saying(because)
                .saying(format!(
                    "But there are {MAX_WORKLOADS} workloads, and no more are made."
                ));
        }
        Explanation::new(Verdict::Due)
            .saying(because)
            .saying(format!(
                "It is routed into {class} at the next sample, unless that finds it changed."
            ))
    }

    fn explain_stay(&self, seen: &Seen, stay: &Stay, now: Moment) -> Explanation {
        match stay {
            Stay::Excluded => {
                let patterns = &self.settings.routing.exclude_patterns;
                let pattern = seen.excluded_by(patterns).unwrap_or_default();
                Explanation::new(Verdict::Excluded).saying(format!(
                    "It is never routed: its command line contains `{pattern}`, which the setting \
                     routing.exclude_patterns lists."
                ))
            }
            Stay::Refused => Explanation::new(Verdict::NeverMoved).saying(
                "A move was refused for what it is, as the journal tells; it is not tried again before it \
                 executes another program.",
            ),
            Stay::Light => self.explain_light(seen),
            Stay::Resting(until) => {
                let what = match self.returned.contains_key(&seen.id) {
                    true => "came back",
                    false if self.cooldowns.contains_key(&seen.id) => "was tried",
                    false => "was started by what came back",
                };
                Explanation::new(Verdict::Resting)
                    .saying(self.reason_words(seen))
                    .saying(format!(
                        "But it {what} a moment ago, and is left alone for another {}.",
                        Seconds(until.since(now))
                    ))
            }
            Stay::Busy => Explanation::new(Verdict::Moving).saying("It is being moved right now."),
            Stay::Settled => Explanation::new(Verdict::Moving).saying(
                "It is the root of a workload, but is not there: the last sample is older than the move, or \
                 somebody took it out.",
            ),
            Stay::Exempt(root) => self.explain_exempt(seen, *root),
            Stay::Spent { cpu } => Explanation::new(Verdict::Calm)
                .saying(self.rule_words(seen))
                .saying(format!(
                    "But its tree came back because it was calm, so that alone does not route it again; {} at the last \
                     sample would, and it used {}.",
                    Percent(self.settings.routing.cpu_threshold),
                    Percent(*cpu)
                )),
        }
    }

    fn explain_exempt(&self, seen: &Seen, root: ProcId) -> Explanation {
        let mut explanation = Explanation::new(Verdict::Held);
        let Some(hold) = self.hold_of(|kind| *kind == Kind::Exempt { root }) else {
            return explanation;
        };
        let id = hold.id;
        let above = self.processes.get(root).is_some_and(|exempt| {
            let mut ancestors = self.processes.ancestors(exempt);
            ancestors.any(|other| other.id == seen.id)
        });
        explanation.say(self.reason_words(seen));
        explanation.say(if root == seen.id {
            format!("But hold {id} exempts it.")
        } else if above {
            format!("But a move would take process {root} along, which hold {id} exempts.")
        } else {
            format!("But hold {id} exempts process {root}, which it descends from.")
        });
        explanation.keep(hold);
        explanation
    }

    fn explain_light(&self, seen: &Seen) -> Explanation {
        let hot = self.counters(seen).samples > 0;
        let mut explanation = Explanation::new(match hot {
            true => Verdict::Counting,
            false => Verdict::Calm,
        });
        match &seen.known {
            // Else it would not be light.
            Some(known) => explanation.say(format!(
                "Rule {} names its command for {}, where detection routes nothing.",
                known.rule, known.class
            )),
            None => explanation.say("No rule names its command."),
        }
        if self.is_apps_own(seen) {
            explanation.verdict = Verdict::Calm;
            explanation.say(
                "It is a desktop app's own process, not started in a terminal: what it uses is the app at work, \
                 which is not routed for that.",
            );
            return explanation;
        }
        explanation.say(self.counted_words(seen));
        if let Some(words) = self.adaptive_words(seen) {
            explanation.say(words);
        }
        explanation
    }

    /// Why it would be routed.
    fn reason_words(&self, seen: &Seen) -> String {
        match seen.known.as_ref().filter(|known| self.takes_known(known)) {
            Some(_) => self.rule_words(seen),
            None => self.counted_words(seen),
        }
    }

    fn rule_words(&self, seen: &Seen) -> String {
        match &seen.known {
            Some(known) => format!("Rule {} names its command: {}.", known.rule, known.reason),
            None => "No rule names its command.".to_owned(),
        }
    }

    /// Whether the tree below it is nearer to being routed than the process itself.
    fn counts_tree(&self, seen: &Seen) -> bool {
        seen.tree.hot_samples > seen.hot_samples
    }

    fn counters(&self, seen: &Seen) -> Counters {
        let tree = self.counts_tree(seen);
        Counters {
            cpu: if tree { seen.tree.cpu } else { seen.cpu },
            threshold: self.settings.routing.cpu_threshold,
            samples: seen.hot_samples.max(seen.tree.hot_samples),
            needed: self.settings.routing.sustained_samples,
        }
    }

    fn counted_words(&self, seen: &Seen) -> String {
        let Counters {
            cpu,
            threshold,
            samples,
            needed,
        } = self.counters(seen);
        let Some(cpu) = cpu else {
            return "It was seen once: how much CPU it uses is known after the next sample."
                .to_owned();
        };
        let (cpu, threshold) = (Percent(cpu), Percent(threshold));
        let by_others = seen.tree.cpu.filter(|_| samples == 0);
        if let Some(tree) = by_others {
            return format!(
                "It used {cpu} of one CPU at the last sample, and with what it started {}; that is the work of one \
                 process below it, which is looked at instead.",
                Percent(tree)
            );
        }
        if self.counts_tree(seen) {
            return format!(
                "It and what it started used {cpu} of one CPU at the last sample. Samples at or above {threshold} \
                 that are not the work of one process below it: {samples} so far; {needed} route it."
            );
        }
        let left = Seconds(self.settings.sampling.interval * needed.saturating_sub(samples));
        match samples {
            0 => format!(
                "It used {cpu} of one CPU at the last sample; {needed} samples in a row at or above {threshold} \
                 would route it, which takes {left}."
            ),
            _ if samples < needed => format!(
                "It used {cpu} of one CPU at the last sample, the {} in a row at or above {threshold}; {needed} \
                 route it, so it has to go on for {left}.",
                Nth(samples)
            ),
            _ => format!(
                "It used {cpu} of one CPU at the last sample, the {} in a row at or above {threshold}; {needed} \
                 route it.",
                Nth(samples)
            ),
        }
    }

    fn adaptive_words(&self, seen: &Seen) -> Option<String> {
        let adaptive = &self.settings.adaptive;
        if !adaptive.enabled {
            return None;
        }
        let command = seen.command.as_deref()?;
        let threshold = adaptive.route_threshold;
        Some(match seen.scored {
            Some(scored) => format!(
                "Its command {command} usually uses {}, so that this scores {:.2}; {threshold:.2} would route it.",
                Percent(scored.mean),
                scored.score
            ),
            None => format!(
                "Too little is known of what its command {command} usually uses: {} of {} samples.",
                self.learned
                    .baseline(command)
                    .map_or(0, |known| known.samples),
                adaptive.min_samples
            ),
        })
    }
}

/// A number in a row, in words as far as they are short.
struct Nth(u32);

impl std::fmt::Display for Nth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0 % 10, self.0 % 100) {
            _ if self.0 == 1 => f.write_str("first"),
            (1, hundred) if hundred != 11 => write!(f, "{}st", self.0),
            (2, hundred) if hundred != 12 => write!(f, "{}nd", self.0),
            (3, hundred) if hundred != 13 => write!(f, "{}rd", self.0),
            _ => write!(f, "{}th", self.0),
        }
    }
}
