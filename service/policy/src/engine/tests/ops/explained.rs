//! Explanations beside what was decided: after a sample nobody is about to be routed, and whoever is on the way,
//! in a workload or held is told so.

use super::world::World;
use crate::action::Placement;
use crate::eligibility::Facts;
use crate::engine::explain::{Question, Verdict};
use crate::id::Moment;

impl World {
    /// What the engine says of each process right after a sample.
    pub fn explain_everybody(&mut self) {
        let told: Vec<(u32, Verdict)> = self
            .processes
            .values()
            .map(|process| {
                let about = Question {
                    id: process.id,
                    cgroup: process.cgroup.to_string(),
                    facts: Facts::default(),
                    watched: self.is_watched(process).then(|| "watched.slice".to_owned()),
                    noted: None,
                };
                let explanation = self.engine.explain(&about, Moment(self.now));
                assert!(!explanation.sentences.is_empty());
                (process.id.pid, explanation.verdict)
            })
            .collect();
        for (pid, verdict) in told {
            self.check(pid, verdict);
            self.count(match verdict {
                Verdict::Routed => "told routed",
                Verdict::Placed => "told placed",
                Verdict::Moving => "told moving",
                Verdict::Counting => "told counting",
                Verdict::Calm => "told calm",
                Verdict::Resting => "told resting",
                Verdict::Held => "told held",
                Verdict::Excluded => "told excluded",
                Verdict::NeverMoved => "told never moved",
                Verdict::Due | Verdict::OutOfReach | Verdict::NotWatched => "told otherwise",
            });
        }
    }

    fn check(&self, pid: u32, verdict: Verdict) {
        let process = &self.processes[&pid];
        let id = process.id;
        let scope = process
            .scope
            .as_ref()
            .and_then(|unit| self.scopes.get(unit));
        let kept = self.engine.keeps(&process.cgroup, id);
        let expected = match (scope, kept) {
            (Some(scope), true) => {
                let back = self.recoveries.contains(&scope.workload.unit);
                let there = match scope.workload.placement {
                    Placement::Routed => Verdict::Routed,
                    Placement::Placed => Verdict::Placed,
                };
                Some(if back { Verdict::Moving } else { there })
            }
            _ if self.moves.iter().any(|order| order.processes.contains(&id)) => {
                Some(Verdict::Moving)
            }
            _ if self.engine.is_busy(id) => None,
            _ if self.engine.holds().is_paused() && self.is_watched(process) => Some(Verdict::Held),
            _ => None,
        };
        if let Some(expected) = expected {
            assert_eq!(verdict, expected, "process {pid}");
        }
        assert_ne!(
            verdict,
            Verdict::Due,
            "process {pid} should have been routed by this sample"
        );
    }
}
