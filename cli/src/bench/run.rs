//! `bench run`.

use std::ffi::OsString;

use bench_profile::cpus::CpuSet;
use bench_profile::profile::Profile;
use bench_system::audit;
use bench_system::root::Root;
use bench_system::run::{self, Order, RunError};
use bench_system::status::{self, Facts, Level};

use super::machine;
use crate::error::CliError;
use crate::exec;

/// Runs the command and answers the exit status.
pub fn run(root: &Root, cpus: Option<&CpuSet>, command: &[OsString]) -> Result<u8, CliError> {
    let file = exec::find(&command[0], std::env::var_os("PATH").as_deref())?;
    let (cpus, pin) = match cpus {
        Some(cpus) => (cpus.clone(), true),
        None => asserted(root)?,
    };
    let order = Order {
        file,
        argv: command.to_vec(),
        cpus,
        pin,
    };
    let report = run::run(root, &order).map_err(|error| match error {
        RunError::Start { ref error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            CliError::NotFound(format!(
                "{} (does its interpreter exist?)",
                order.file.display()
            ))
        }
        RunError::Start { .. } => CliError::NotExecutable(error.to_string()),
        other => machine::failed(other),
    })?;
    // The command's output is the caller's: ours goes beside it.
    eprint!("{}", audit::text(&report.audit));
    Ok(report.status())
}

/// The CPUs of the profile of this boot, and whether the command is kept on them; or every reason why the machine is
/// not in its state.
fn asserted(root: &Root) -> Result<(CpuSet, bool), CliError> {
    let Some(profile) = machine::booted(root)? else {
        return Err(CliError::Failed(
            "this boot is in no benchmark profile, so there is no state to measure in: boot one, or name CPUs with --cpus \
             to do without"
                .into(),
        ));
    };
    let facts = Facts::gather(root);
    let reasons: Vec<String> = status::judge(&facts, profile)
        .into_iter()
        .filter(|finding| finding.level == Level::Differs)
        .map(|finding| format!("\n  {}: {}", finding.id, finding.text))
        .collect();
    if !reasons.is_empty() {
        return Err(CliError::Failed(format!(
            "the machine is not in the state of {profile}:{}",
            reasons.concat()
        )));
    }
    let cpus = facts.machine.map_err(CliError::Failed)?.machine.cpus;
    Ok(match profile {
        Profile::SingleCore => (CpuSet::from(cpus.single_core), true),
        Profile::MultiCore => (cpus.bench, true),
        // Housekeeping shares the CPUs by design.
        Profile::Unlimited => (facts.topology.map_err(CliError::Failed)?.online, false),
    })
}
