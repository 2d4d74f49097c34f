//! `cargo xtask experiment`: the live experiments of `benchmarks/`, in a machine of their own or on this one.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::guest::{Guest, PAYLOAD_IN_GUEST};
use crate::payload::{Payloads, Profile, Workspace, cargo};
use crate::runner::tiers::{self, GuestTier};
use crate::{process, progress};

/// The longest takes a quarter of an hour with its defaults; who asks for more repetitions waits for them.
const DEADLINE: Duration = Duration::from_secs(12 * 60 * 60);
/// For reading a file of results.
const SOON: Duration = Duration::from_secs(60);
/// Where a guest has them.
const RESULTS_IN_GUEST: &str = "/home/dev/experiment";

/// Arguments of `cargo xtask experiment`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// In your own session on this system, instead of in a machine of its own: says what it will change, asks,
    /// and puts it back.
    #[arg(long)]
    host: bool,
    /// With a development build of the product: quicker to build, another speed.
    #[arg(long, conflicts_with = "host")]
    dev: bool,
    /// Folder for the tables and plots [default: benchmarks/results of the checkout]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Which one, and its options: quota-sweep, contention, contention --isolated; --help lists them.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WHAT"
    )]
    what: Vec<String>,
}

/// Runs it; returns its exit status.
pub fn run(args: &Args) -> Result<u8> {
    let out = match &args.out {
        Some(out) => std::path::absolute(out)?,
        None => Workspace::locate()?
            .workspace_root
            .join("benchmarks/results"),
    };
    let asks_for_help = args
        .what
        .iter()
        .any(|word| word == "--help" || word == "-h");
    match args.host || asks_for_help {
        true => on_host(&args.what, &out),
        false => in_machine(args, &out),
    }
}

fn on_host(what: &[String], out: &Path) -> Result<u8> {
    let mut command = cargo();
    command
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "guard-benchmarks",
        ])
        .args(["--", "experiment"])
        .args(what)
        .args([OsString::from("--out"), out.into()]);
    let status = command.status().context("cannot start cargo")?;
    Ok(u8::try_from(process::shell_status(status)).unwrap_or(1))
}

fn in_machine(args: &Args, out: &Path) -> Result<u8> {
    progress::say("building the product");
    let profile = match args.dev {
        true => Profile::Dev,
        false => Profile::Release,
    };
    let payloads = Payloads::new(None, profile)?;
    let mut source = tiers::trixie(GuestTier::Machine, &payloads)?;
    progress::say(&format!("booting {}", source.name()));
    let mut guest = source.fresh()?;
    let program = format!("{PAYLOAD_IN_GUEST}/guard-scenarios");
    // The machine shows more CPUs than it has.
    let cpus = std::thread::available_parallelism()?.to_string();
    let mut argv = vec![program.as_str(), "experiment"];
    argv.extend(args.what.iter().map(String::as_str));
    argv.extend(["--yes", "--real-cpus", &cpus, "--out", RESULTS_IN_GUEST]);
    let status = guest.run(&argv, DEADLINE, &mut |bytes| {
        let mut stdout = std::io::stdout();
        // When nobody reads any more, the results still count.
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    })?;
    fetch(guest.as_mut(), out)?;
    guest.shutdown()?;
    Ok(u8::try_from(status).unwrap_or(1))
}

/// Copies what there is, also of an experiment that failed: every trial is kept.
fn fetch(guest: &mut dyn Guest, out: &Path) -> Result<()> {
    let read = |guest: &mut dyn Guest, argv: &[&str]| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let status = guest.run(argv, SOON, &mut |more| bytes.extend_from_slice(more))?;
        ensure!(
            status == 0,
            "{} in the guest: {}",
            argv.join(" "),
            String::from_utf8_lossy(&bytes).trim()
        );
        Ok(bytes)
    };
    let names = read(guest, &["ls", RESULTS_IN_GUEST])?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for name in String::from_utf8_lossy(&names).lines() {
        let content = read(guest, &["cat", &format!("{RESULTS_IN_GUEST}/{name}")])?;
        let path = out.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        progress::say(&format!("written: {}", path.display()));
    }
    Ok(())
}
