//! New programs: told by the kernel where it does, seen by samples where not.

use std::io;
use std::time::{Duration, Instant};

use guard_policy::event::Event;
use guard_system::exec_events::{Batch, ExecEvents, with_ancestors};
use guard_system::proc::ProcFs;

use super::{Guard, Wake};

/// Name of the capability.
const CAPABILITY: &str = "exec-events";
/// What the bus says while there are events.
const ACTIVE: &str = "active";
/// Looks at everything after lost events: rest after each, in times what it took, so that a storm that
/// goes on costs little.
const REST: u32 = 50;
/// And no rest is shorter.
const SHORTEST_REST: Duration = Duration::from_millis(100);

/// The source of new programs.
pub struct Programs {
    /// Or why there is none.
    events: Result<ExecEvents, String>,
    lost: u64,
    /// No extra look at everything before this.
    rest: Instant,
}

impl Programs {
    /// Subscribes where that is possible.
    pub fn open() -> Programs {
        let events = ExecEvents::open(None).map_err(|why| why.to_string());
        match &events {
            Ok(_) => log::debug!("new programs are told by exec events"),
            Err(why) => log::debug!("no exec events, samples alone see new programs: {why}"),
        }
        Programs {
            events,
            lost: 0,
            rest: Instant::now(),
        }
    }

    /// The capability, where there is one.
    pub fn capability(&self) -> Option<String> {
        self.events.is_ok().then(|| CAPABILITY.to_owned())
    }

    /// `active`, or why not.
    pub fn state(&self) -> String {
        match &self.events {
            Ok(_) => ACTIVE.to_owned(),
            Err(why) => why.clone(),
        }
    }

    /// Events so far that nobody looked at.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits for new programs in these control groups; for ever where nobody tells of them.
    pub async fn next(&mut self, proc: &ProcFs, parents: &[String]) -> Wake {
        match &mut self.events {
            Ok(events) => Wake::Programs(events.next(proc, parents).await),
            Err(_) => std::future::pending().await,
        }
    }

    /// A look at everything has ended, which took so long.
    pub fn looked_at_everything(&mut self, took: Duration) {
        self.rest = Instant::now() + (took * REST).max(SHORTEST_REST);
    }

    /// When to look at everything after events were lost.
    pub fn make_good_at(&self) -> Instant {
        self.rest
    }
}

/// What follows from news of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The engine was asked, or the source is gone: the state may have changed.
    pub changed: bool,
    /// Events were lost: everything has to be looked at.
    pub scan: bool,
}

impl Guard {
    /// Lets the engine decide about programs that a rule may name.
    pub(super) fn told_of_programs(&mut self, told: io::Result<Batch>, parents: &[String]) -> News {
        let mut news = News::default();
        let batch = match told {
            Ok(batch) => batch,
            Err(error) => {
                log::warn!("exec events ended, samples alone see new programs: {error}");
                self.programs.events = Err(format!("the kernel's socket failed: {error}"));
                return News {
                    changed: true,
                    scan: true,
                };
            }
        };
        for process in batch.executed {
            if self.engine.is_candidate(&process.argv) {
                let exec = with_ancestors(&self.proc, process, parents);
                self.decide(Event::Exec(exec));
                news.changed = true;
            }
        }
        if batch.lost > 0 {
            log::debug!(
                "{} exec events were lost; everything is looked at",
                batch.lost
            );
            self.programs.lost += batch.lost;
            news.scan = true;
        }
        news
    }
}
