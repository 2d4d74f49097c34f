//! A small bus client that stays: what an app does that puts itself into a class.

use anyhow::Result;

use crate::harness::guard::Guard;
use crate::harness::session::Session;

/// Attaches itself (PID 0: the caller as the bus knows it), tells where, and stays until it is killed.
pub fn attach_self(class: &str) -> Result<()> {
    let session = Session::open()?;
    let guard = Guard::connect(&session)?;
    let workload = guard.attach(&[0], class, "an app of its own accord")?;
    println!("{}", workload.as_str());
    loop {
        std::thread::park();
    }
}
