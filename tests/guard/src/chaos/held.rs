//! What a person holds: it must outlive whatever happens to the guard.

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::types::HoldRow;
use zbus::block_on;

use crate::harness::guard::{Guard, options};
use crate::harness::load::{Load, busy, idle, load};
use crate::harness::outcome::step;
use crate::harness::wait::{PATIENCE, until_true};

/// A busy process that is exempt, a calm one that is pinned where it was routed to, and the two holds.
#[derive(Debug)]
pub struct Held {
    exempt: Load,
    pinned: Load,
    its_place: String,
    rows: Vec<HoldRow>,
}

impl Held {
    /// Takes both holds.
    pub fn take(guard: &Guard) -> Result<Held> {
        let exempt = load(&["spin", "--idle"]).start()?;
        block_on(
            guard
                .proxy()
                .exempt(exempt.pid, options("the person works on it")),
        )?;
        busy(exempt.pid)?;
        let pinned = load(&["spin", "--idle"]).start()?;
        // A hot process cannot come back between its route and its pin.
        guard.routed_by_load(pinned.pid)?;
        block_on(guard.proxy().pin(pinned.pid, options("stays there")))?;
        idle(pinned.pid)?;
        let its_place = pinned.now_in()?;
        let rows = guard.holds()?;
        ensure!(rows.len() == 2, "{rows:?}");
        Ok(Held {
            exempt,
            pinned,
            its_place,
            rows,
        })
    }

    /// Whether both processes are where their holds keep them.
    pub fn keep(&self) -> Result<()> {
        for (load, cgroup) in [
            (&self.exempt, &self.exempt.cgroup),
            (&self.pinned, &self.its_place),
        ] {
            let now = load.now_in()?;
            ensure!(
                now == *cgroup,
                "process {} is held and was moved to {now}",
                load.pid
            );
        }
        Ok(())
    }

    /// Both holds are as they were, to the letter, and end when they are released.
    pub fn are_there_and_end(self, guard: &Guard) -> Result<()> {
        self.keep()?;
        let now = guard.holds()?;
        ensure!(
            now == self.rows,
            "holds before: {:#?}, and now: {now:#?}",
            self.rows
        );
        for row in &self.rows {
            block_on(guard.proxy().release_hold(row.id)).context(row.kind.clone())?;
        }
        until_true("the pinned one is home", PATIENCE, || {
            let now = self.pinned.now_in()?;
            ensure!(now == self.pinned.cgroup, "it is in {now}");
            Ok(true)
        })?;
        step("both holds outlived it, and end");
        Ok(())
    }
}
