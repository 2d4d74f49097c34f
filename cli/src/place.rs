//! `run` and `protect`: this process moves into a class, then becomes the command.

use std::convert::Infallible;
use std::io::IsTerminal;

use guard_policy::printable::command_line;
use zbus::Connection;

use crate::error::CliError;
use crate::plan::{Placement, Terms};
use crate::{bus, call, exec, fallback, session};

/// Carries out `placement`; comes back only when it cannot.
///
/// The order matters: a command that cannot be started is an error before anything has moved.
pub fn place(placement: &Placement) -> Result<Infallible, CliError> {
    let path = std::env::var_os("PATH");
    let file = exec::find(&placement.argv[0], path.as_deref())?;
    async_io::block_on(enter(placement))?;
    if placement.shell && std::io::stderr().is_terminal() {
        eprintln!(
            "workload-guard: a shell in the {} class; `exit` leaves it",
            placement.class
        );
    }
    exec::become_command(&file, &placement.argv)
}

/// Moves this process: by the guard, or else by systemd.
async fn enter(placement: &Placement) -> Result<(), CliError> {
    let bus = bus::connect().await?;
    bus::driven(&bus, enter_over(&bus, placement)).await
}

async fn enter_over(bus: &Connection, placement: &Placement) -> Result<(), CliError> {
    let away = match bus::guard(bus, None).await {
        Ok(guard) => {
            // PID 0 is the caller as the bus knows it: true also where this process sees another number.
            let moved = guard
                .attach(
                    vec![0],
                    placement.class.to_owned(),
                    call::options(&Terms {
                        reason: Some(placement.reason.to_owned()),
                        ..Terms::default()
                    }),
                )
                .await;
            return moved.map(drop).map_err(CliError::from);
        }
        Err(CliError::Unavailable(text)) => text,
        Err(error) => return Err(error),
    };
    let words: Vec<_> = placement
        .argv
        .iter()
        .map(|arg| arg.to_string_lossy())
        .collect();
    let pid = std::process::id();
    let missing = fallback::place(
        bus,
        placement.class,
        pid,
        own_start_time()?,
        &command_line(&words),
    )
    .await?;
    let slice = fallback::slice_of(placement.class);
    eprintln!(
        "workload-guard: {away}\nworkload-guard: systemd put the command into {slice} without the guard"
    );
    let warnings = [missing.as_deref(), session::Facts::gather().no_cgroup2()];
    for text in warnings.into_iter().flatten() {
        eprintln!("workload-guard: {text}");
    }
    Ok(())
}

/// When this process started, in clock ticks after boot: field 22 of /proc/self/stat (proc_pid_stat(5)).
fn own_start_time() -> Result<u64, CliError> {
    let stat = std::fs::read_to_string("/proc/self/stat")
        .map_err(|error| CliError::Failed(format!("/proc/self/stat: {error}")))?;
    start_time(&stat)
        .ok_or_else(|| CliError::Failed(format!("/proc/self/stat: no start time in {stat:?}")))
}

fn start_time(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses, which may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_hostile_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99887766 1 2";
        assert_eq!(start_time(stat), Some(99_887_766));
        assert_eq!(start_time("7 (a"), None);
    }
}
