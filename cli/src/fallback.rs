//! A scope from systemd itself, for `run` and `protect` when the guard is away: the budget is the slice's,
//! so it holds either way, and a guard that comes back finds the scope by its name.

use workload_guard_dbus::scope::{Origin, ScopeName};
use workload_guard_dbus::systemd1::ManagerProxy;
use zbus::Connection;
use zvariant::{OwnedObjectPath, Value};

use crate::bus::{self, JobError};
use crate::error::CliError;
use crate::plan;

/// The slice of a built-in class. The guard's settings can name another; without the guard nobody knows them.
pub fn slice_of(class: &str) -> &'static str {
    if class == plan::PROTECTED {
        "protected-workload.slice"
    } else {
        "heavy-workload.slice"
    }
}

/// Moves this process into a scope of its own in the slice of `class`. `start` is its start time in clock ticks
/// after boot. Answers a warning when the slice has no budget.
pub async fn place(
    bus: &Connection,
    class: &str,
    pid: u32,
    start: u64,
    description: &str,
) -> Result<Option<String>, CliError> {
    let manager = bus::manager(bus).await?;
    let slice = slice_of(class);
    let name = ScopeName {
        class: class.to_owned(),
        origin: Origin::Placed,
        pid,
        start,
    }
    .to_string();
    let scope = bus::run_job(
        &manager,
        start_scope(&manager, &name, slice, pid, description),
    )
    .await;
    match scope.as_deref() {
        Ok("done") => {}
        Ok(result) => {
            return Err(CliError::Failed(format!(
                "systemd could not start {name} in {slice} (its job ended: {result}); see: journalctl --user -n 20"
            )));
        }
        // `run` by exec inside `run` is the same process, hence the same name: the scope is its own already.
        Err(JobError::Bus(error)) if bus::unit_exists(error) => {
            manager.attach_processes_to_unit(&name, "", &[pid]).await?;
        }
        Err(_) => return Err(scope.unwrap_err().into()),
    }
    let unit = manager.load_unit(slice).await?;
    let file = bus::unit_text(bus, &unit, "FragmentPath").await?;
    Ok(file.is_empty().then(|| {
        format!("{slice} has no unit file, so it has no budget; install the guard's units")
    }))
}

async fn start_scope(
    manager: &ManagerProxy<'_>,
    name: &str,
    slice: &str,
    pid: u32,
    description: &str,
) -> zbus::Result<OwnedObjectPath> {
    // As the guard makes its own scopes: delegated, so that it can add to it; a failed one is collected; a shell,
    // which ignores SIGTERM, is hung up when the scope is stopped; a weight of its own, so that workloads share
    // by workload and not by thread.
    let properties = [
        ("Description", Value::from(description)),
        ("Slice", Value::from(slice)),
        ("PIDs", Value::from(vec![pid])),
        ("Delegate", Value::from(true)),
        ("CollectMode", Value::from("inactive-or-failed")),
        ("SendSIGHUP", Value::from(true)),
        ("CPUWeight", Value::from(100_u64)),
    ];
    manager
        .start_transient_unit(name, "fail", &properties, &[])
        .await
}
