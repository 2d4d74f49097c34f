//! From a wish to a decision: bounds, step and dwell, the same for each policy.

use super::decision::percent;
use super::{
    Decision, Direction, Policy, QuotaSettings, Telemetry, Verdict, Wish, protected, step,
};
use crate::id::Moment;

/// Remembers when the quota was changed last, by anybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controller {
    changed: Option<Moment>,
}

impl Controller {
    /// The quota was changed, by a decision or by somebody else: the dwell begins.
    pub fn changed(&mut self, now: Moment) {
        self.changed = Some(now);
    }

    /// Decides by the policy of the settings. `quota` is in percent of one logical CPU, none for no limit.
    ///
    /// A change is reported with [`Controller::changed`] once it is done; one that failed begins no dwell.
    pub fn decide(
        &self,
        telemetry: &Telemetry,
        quota: Option<f64>,
        settings: &QuotaSettings,
        now: Moment,
    ) -> Decision {
        let wish = match settings.policy {
            Policy::Step => step(telemetry, settings),
            Policy::Protected => protected(telemetry, settings),
        };
        self.follow(wish, quota, settings, now)
    }

    /// Makes a decision of a wish.
    pub(super) fn follow(
        &self,
        wish: Result<Wish, Vec<super::Fault>>,
        quota: Option<f64>,
        settings: &QuotaSettings,
        now: Moment,
    ) -> Decision {
        let wish = match wish {
            Ok(wish) => wish,
            Err(faults) if faults.is_empty() => {
                return Decision {
                    verdict: Verdict::Wait,
                    words: "waiting for a second reading".to_owned(),
                };
            }
            Err(faults) => return Decision::frozen(faults),
        };
        let (to, why) = target(&wish, quota, settings);
        if quota == Some(to) {
            let at_bound = match wish.direction {
                Direction::Up => ", the maximum",
                Direction::Down => ", the minimum",
                Direction::Stay => "",
            };
            return Decision {
                verdict: Verdict::Keep,
                words: format!("kept at {}{at_bound}: {why}", percent(to)),
            };
        }
        let here = quota.map_or("no limit".to_owned(), percent);
        if let Some(changed) = self.changed {
            let since = now.since(changed);
            if since < settings.dwell {
                return Decision {
                    verdict: Verdict::Keep,
                    words: format!(
                        "kept at {here} instead of {}, since the last change is {:.1} s ago and the dwell is {} s: {why}",
                        percent(to),
                        since.as_secs_f64(),
                        settings.dwell.as_secs_f64()
                    ),
                };
            }
        }
        let word = if quota.is_some_and(|quota| to > quota) {
            "raised"
        } else {
            "lowered"
        };
        Decision {
            verdict: Verdict::Change { from: quota, to },
            words: format!("{word} from {here} to {}: {why}", percent(to)),
        }
    }
}

/// Where a wish leads: at most one step away, and towards the bounds when outside of them.
///
/// A whole percent, so that systemd's rounding cannot make it look like somebody else's value.
fn target(wish: &Wish, quota: Option<f64>, settings: &QuotaSettings) -> (f64, String) {
    let step = f64::from(settings.step);
    let Some(quota) = quota else {
        let why = format!("it had no limit, and {}", wish.why);
        return (settings.most(), why);
    };
    if quota > settings.most() {
        let to = (quota - step).max(settings.most()).ceil();
        let why = format!("it was above the maximum of {}%", settings.max);
        return (to, why);
    }
    if quota < settings.least() {
        let to = (quota + step).min(settings.least()).floor();
        let why = format!("it was below the minimum of {}%", settings.min);
        return (to, why);
    }
    let to = match wish.direction {
        Direction::Up => (quota + step).min(settings.most()).floor(),
        Direction::Down => (quota - step).max(settings.least()).ceil(),
        Direction::Stay => quota,
    };
    (to, wish.why.clone())
}
