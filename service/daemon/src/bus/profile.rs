//! The object of `org.workloadguard.Profile1`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use guard_insight::profile::{Counters, Excess, Profile, top};
use guard_system::cgroup::CgroupFs;
use guard_system::profile::{Reading, Stat, read, wakeups};
use workload_guard_dbus::dict::{self, Dict};
use workload_guard_dbus::{GuardError, Profile1, Profile1Backend, names};
use zbus::names::OwnedUniqueName;
use zbus::object_server::SignalEmitter;

use crate::history::pressure;

/// Serves [`Profile1Backend`].
pub struct ProfileObject {
    connection: zbus::Connection,
    /// One look at a time: two would time each other.
    busy: Arc<AtomicBool>,
}

/// What the looking thread tells.
enum Told {
    Part(f64),
    Done(Box<Profile>),
}

impl ProfileObject {
    /// Tells callers their progress over `connection`.
    pub fn new(connection: zbus::Connection) -> ProfileObject {
        ProfileObject {
            connection,
            busy: Arc::default(),
        }
    }
}

impl Profile1Backend for ProfileObject {
    async fn sample(
        &self,
        caller: Option<OwnedUniqueName>,
        duration: f64,
        samples: u32,
    ) -> Result<Dict, GuardError> {
        let duration = check(duration, samples)?;
        let cgroups =
            CgroupFs::detect().map_err(|error| GuardError::SystemdRefused(error.to_string()))?;
        let turn = Turn::take(&self.busy)?;
        let (tell, mut told) = unbounded();
        std::thread::Builder::new()
            .name("profile".to_owned())
            .spawn(move || {
                let _turn = turn;
                look(&cgroups, duration, samples, &tell);
            })
            .map_err(|error| {
                GuardError::SystemdRefused(format!("no thread can be started: {error}"))
            })?;
        let emitter = SignalEmitter::new(&self.connection, names::GUARD_PATH)?;
        let emitter = match caller {
            Some(caller) => emitter.set_destination(caller.into_inner().into()),
            None => emitter,
        };
        while let Some(told) = told.next().await {
            match told {
                Told::Part(part) => {
                    // Who asked may have left; the look ends by itself.
                    let _ = Profile1::<ProfileObject>::progress(&emitter, part).await;
                }
                Told::Done(profile) => return Ok(dict::of(&*profile)),
            }
        }
        Err(GuardError::SystemdRefused("the look broke off".into()))
    }
}

fn check(duration: f64, samples: u32) -> Result<Duration, GuardError> {
    if !(0.5..=60.0).contains(&duration) {
        return Err(GuardError::LimitExceeded(format!(
            "a look takes from 0.5 to 60 s, not {duration}"
        )));
    }
    if !(10..=2000).contains(&samples) || f64::from(samples) > duration * 1000.0 {
        return Err(GuardError::LimitExceeded(format!(
            "a look times from 10 to 2000 wakeups, at most 1000 a second, not {samples} in {duration} s"
        )));
    }
    Ok(Duration::from_secs_f64(duration))
}

/// The one turn, given back when the look ends in any way.
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(busy: &Arc<AtomicBool>) -> Result<Turn, GuardError> {
        match busy.swap(true, Ordering::AcqRel) {
            false => Ok(Turn(busy.clone())),
            true => Err(GuardError::LimitExceeded(
                "another look is going on; try again when it has ended".into(),
            )),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn look(cgroups: &CgroupFs, duration: Duration, samples: u32, tell: &UnboundedSender<Told>) {
    let proc = std::path::Path::new("/proc");
    let before = read(proc, cgroups);
    let begin = Instant::now();
    let late = wakeups(duration, samples, |part| {
        let _ = tell.unbounded_send(Told::Part(part));
    });
    let seconds = begin.elapsed().as_secs_f64();
    let after = read(proc, cgroups);
    let mut profile = between(&before, &after, seconds);
    profile.psi_some_avg10 = pressure(proc, cgroups);
    profile.wakeup_excess_ms = Excess::of(late);
    profile.cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u64);
    let _ = tell.unbounded_send(Told::Done(Box::new(profile)));
}

fn between(before: &Reading, after: &Reading, seconds: f64) -> Profile {
    let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    let empty = Stat::new();
    let groups = after.groups.iter().map(|(path, stat)| {
        let old = before.groups.get(path).unwrap_or(&empty);
        (
            path.clone(),
            counters(path, old, before),
            counters(path, stat, after),
        )
    });
    let (top_cpu, top_throttled) = top(groups, seconds);
    Profile {
        duration_sec: seconds,
        psi_some: grown(before.psi_usec, after.psi_usec)
            .map(|usec| (usec as f64 / (seconds * 1e6)).min(1.0)),
        runqueue_delay_ms: grown(before.waited_nsec, after.waited_nsec)
            .map(|nsec| nsec as f64 / 1e6),
        top_cpu,
        top_throttled,
        ..Profile::default()
    }
}

fn counters(path: &str, stat: &Stat, reading: &Reading) -> Counters {
    let of = |key: &str| stat.get(key).copied().unwrap_or(0);
    let prefix = if path == "/" {
        "/".to_owned()
    } else {
        format!("{path}/")
    };
    let below = reading
        .groups
        .range(prefix.clone()..)
        .take_while(|(other, _)| other.starts_with(&prefix))
        .filter(|(other, _)| other.len() > prefix.len() && !other[prefix.len()..].contains('/'))
        .filter_map(|(_, stat)| stat.get("usage_usec"))
        .sum();
    Counters {
        usage_usec: of("usage_usec"),
        below_usec: below,
        periods: of("nr_periods"),
        throttled: of("nr_throttled"),
        throttled_usec: of("throttled_usec"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_bounded() {
        assert!(check(5.0, 200).is_ok() && check(0.5, 500).is_ok() && check(60.0, 2000).is_ok());
        for (duration, samples) in [
            (0.4, 10),
            (61.0, 10),
            (f64::NAN, 10),
            (5.0, 9),
            (5.0, 2001),
            (1.0, 1001),
        ] {
            let refused = check(duration, samples);
            assert!(
                matches!(refused, Err(GuardError::LimitExceeded(_))),
                "{duration} {samples}"
            );
        }
    }

    #[test]
    fn one_look_at_a_time() {
        let busy = Arc::default();
        let turn = Turn::take(&busy);
        assert!(turn.is_ok() && Turn::take(&busy).is_err());
        drop(turn);
        assert!(Turn::take(&busy).is_ok());
    }

    #[test]
    fn what_is_below_is_taken_off_once() {
        let reading = |usage: [u64; 3]| {
            let stat = |usec| Stat::from([("usage_usec".to_owned(), usec)]);
            Reading {
                groups: [
                    ("/", usage[0]),
                    ("/a.slice", usage[1]),
                    ("/a.slice/b", usage[2]),
                ]
                .map(|(path, usec)| (path.to_owned(), stat(usec)))
                .into(),
                psi_usec: Some(usage[0]),
                waited_nsec: None,
            }
        };
        let profile = between(
            &reading([0, 0, 0]),
            &reading([1_000_000, 900_000, 700_000]),
            1.0,
        );
        let rows: Vec<(&str, f64)> = profile
            .top_cpu
            .iter()
            .map(|row| (row.cgroup.as_str(), row.cpu_pct.round()))
            .collect();
        assert_eq!(
            rows,
            [("/a.slice/b", 70.0), ("/a.slice", 20.0), ("/", 10.0)]
        );
        assert_eq!(
            (profile.psi_some, profile.runqueue_delay_ms),
            (Some(1.0), None)
        );
    }
}
