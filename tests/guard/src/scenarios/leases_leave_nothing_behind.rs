//! A thousand leases, opened and closed by a client each: neither memory nor descriptors of the guard grow.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use workload_guard_dbus::Guard1Proxy;
use zbus::block_on;
use zvariant::OwnedValue;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::{Load, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "leases-leave-nothing-behind",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run,
};

/// Holds that move nothing, of clients that come and go.
const HOLDS: usize = 900;
/// Leases on work that is moved there and back.
const LEASES: usize = 100;
/// What the allocator may keep. A leak of 300 bytes for each would be more.
const GROWTH_KB: u64 = 256;
/// Files of a scope that a look keeps open until the next one. One leaked with each lease would be hundreds.
const KEPT_OPEN: usize = 8;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let nest = load(&["nest", "1"]).slice("app.slice").property("Delegate=yes").start()?;
    // What is made once, such as the reader of the bus, is no growth.
    round(session, &guard, &nest, HOLDS / 10, LEASES / 10)?;
    let pid = guard.pid()?;
    let before = (proc::resident_kb(pid)?, descriptors(pid)?);
    round(session, &guard, &nest, HOLDS, LEASES)?;
    let after = (proc::resident_kb(pid)?, descriptors(pid)?);
    step(format_args!(
        "{} leases: VmRSS {} kB, then {} kB; descriptors {}, then {}",
        HOLDS + LEASES,
        before.0,
        after.0,
        before.1,
        after.1
    ));
    ensure!(guard.pid()? == pid, "the guard was started again");
    ensure!(after.0 <= before.0 + GROWTH_KB, "memory grew: {before:?}, {after:?}");
    ensure!(after.1 <= before.1 + KEPT_OPEN, "descriptors grew: {before:?}, {after:?}");
    units::no_scope_of_ours_left(session, PATIENCE)
}

fn round(session: &Session, guard: &Guard, nest: &Load, holds: usize, leases: usize) -> Result<()> {
    let lease: HashMap<String, OwnedValue> = [("lease".to_owned(), true.into())].into();
    for n in 0..holds {
        let client = Client::new(session)?;
        match n % 2 {
            0 => block_on(client.0.pause(lease.clone()))?,
            _ => block_on(client.0.exempt(nest.pid, lease.clone()))?,
        };
        client.leave()?;
    }
    gone(guard)?;
    let child = nest.member()?;
    for _ in 0..leases {
        let client = Client::new(session)?;
        block_on(client.0.attach(vec![child], "heavy".to_owned(), lease.clone()))?;
        client.leave()?;
        gone(guard)?;
    }
    Ok(())
}

/// A connection of its own.
struct Client(Guard1Proxy<'static>);

impl Client {
    fn new(session: &Session) -> Result<Client> {
        let builder = Guard1Proxy::builder(session.another()?.bus());
        let builder = builder.cache_properties(zbus::proxy::CacheProperties::No);
        Ok(Client(block_on(builder.build())?))
    }

    fn leave(self) -> Result<()> {
        let connection = self.0.inner().connection().clone();
        drop(self);
        Ok(block_on(connection.close())?)
    }
}

fn gone(guard: &Guard) -> Result<()> {
    until_true("nothing is held", PATIENCE, || Ok(guard.holds()?.is_empty()))
}

fn descriptors(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}
