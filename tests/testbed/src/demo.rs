//! `cargo xtask demo`: the product's main job on real work, in a real systemd that is not the user's own.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use crate::guest::PAYLOAD_IN_GUEST;
use crate::payload::{Payloads, Profile};
use crate::progress;
use crate::runner::tiers::{self, GuestTier};

/// The demo takes under three minutes; a slow host gets some more.
const DEADLINE: Duration = Duration::from_secs(10 * 60);

/// Arguments of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where it runs: quotas are enforced in the machine, the container starts sooner.
    #[arg(long, value_enum, default_value = "machine")]
    tier: GuestTier,
}

/// Builds, boots, shows; returns the demo's exit status, which is not 0 when a step was not observed.
pub fn run(args: &Args) -> Result<u8> {
    progress::say("building the product");
    let payloads = Payloads::new(None, Profile::Release)?;
    let mut source = tiers::trixie(args.tier, &payloads)?;
    progress::say(&format!("booting {}", source.name()));
    let mut guest = source.fresh()?;
    progress::say(&format!(
        "{} is up: a systemd of its own, yours is not touched",
        guest.name()
    ));
    let program = format!("{PAYLOAD_IN_GUEST}/guard-scenarios");
    let status = guest.run(&[&program, "demo"], DEADLINE, &mut |bytes| {
        let mut stdout = std::io::stdout();
        // When nobody reads any more, the exit status still counts.
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    })?;
    guest.shutdown()?;
    Ok(u8::try_from(status).unwrap_or(1))
}
