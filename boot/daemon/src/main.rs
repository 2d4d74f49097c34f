//! bench-prepd: the system bus service of the bench profiles.

mod access;
mod activity;
mod entries;
mod logging;
mod object;
mod options;
mod prepare;
mod rows;
mod signals;
mod systemd;
mod turn;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bench_system::root::Root;
use futures_lite::FutureExt;
use workload_guard_dbus::{BenchPrep1, names};
use zbus::fdo::{RequestNameFlags, RequestNameReply};

use access::Gate;
use activity::Activity;
use object::BenchObject;
use prepare::Preparer;
use signals::Signals;
use systemd::Systemd;
use turn::Turns;

/// sysexits(3): a service that is needed is not there.
const EX_UNAVAILABLE: u8 = 69;
/// Nobody measures beside a service that waits for nothing: it ends, and the next call starts it again.
const IDLE: Duration = Duration::from_secs(60);
/// What a call needs at most to reach its object, and its answer to be sent.
const DISPATCH: Duration = Duration::from_millis(250);
/// The longest wait, at the end, for calls that change nothing any more: those that wait for a person.
const PARTING: Duration = Duration::from_secs(1);

const USAGE: &str = "\
bench-prepd: brings this machine into the state of a benchmark profile, and puts it back.

It takes no arguments: a call on the system bus starts it (workload-guard bench apply), and it ends when
nobody has called for a minute. BENCH_PREP_LOG=debug in its environment logs more.

  --root DIR  for tests: reads and writes a recorded tree below DIR instead of this machine. No unit is
              stopped, and no canary runs, since neither would be the tree's.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = match words.as_slice() {
        [] => Root::new("/"),
        ["--root", folder] => Root::new(folder),
        ["--version" | "-V"] => {
            println!("bench-prepd {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!(
                "bench-prepd: not understood: {}\n\n{USAGE}",
                other.join(" ")
            );
            return ExitCode::from(2);
        }
    };
    logging::start();
    match async_io::block_on(run(root)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{error:#}");
            ExitCode::from(EX_UNAVAILABLE)
        }
    }
}

async fn run(root: Root) -> anyhow::Result<()> {
    let signals = Signals::block()?;
    let connection = zbus::connection::Builder::system()?
        .build()
        .await
        .context("the system bus cannot be reached")?;
    let activity = Activity::new(Instant::now());
    let turns = Turns::default();
    let recorded = !root.is_machine();
    if recorded {
        log::warn!(
            "this machine is left alone: {} is prepared instead",
            root.path("").display()
        );
    }
    let systemd = (!recorded).then(|| Systemd::new(connection.clone()));
    let object = BenchObject::new(
        connection.clone(),
        Gate(connection.clone()),
        activity.clone(),
        turns.clone(),
        Preparer::new(root, systemd),
    );
    // Before the name: the call that activated us comes before the reply to RequestName.
    connection
        .object_server()
        .at(names::BENCH_PATH, BenchPrep1(Arc::new(object)))
        .await?;
    let reply = connection
        .request_name_with_flags(names::BENCH_NAME, RequestNameFlags::DoNotQueue.into())
        .await;
    if !matches!(reply, Ok(RequestNameReply::PrimaryOwner)) {
        bail!(
            "the bus does not give us the name {}: {reply:?}. Either another bench-prepd runs, or \
             /usr/share/dbus-1/system.d/org.workloadguard.BenchPrep1.conf is not there, or this is not root",
            names::BENCH_NAME
        );
    }
    let told = async {
        signals.wait().await?;
        log::info!("told to end; a change that is under way is finished first");
        Ok(())
    };
    let idle = async {
        activity.ceased_for(IDLE).await;
        log::debug!("nobody has called for {} s", IDLE.as_secs());
        Ok::<(), std::io::Error>(())
    };
    told.or(idle).await?;
    // From here on the bus starts another one for whoever calls. What reached us before is still answered.
    if let Err(error) = connection.release_name(names::BENCH_NAME).await {
        log::debug!("the name could not be given back: {error}");
    }
    let answered = || async {
        activity.touch();
        let patience = async {
            async_io::Timer::after(PARTING).await;
        };
        activity.ceased_for(DISPATCH).or(patience).await;
    };
    answered().await;
    // Half a change is worse than none.
    let _last = turns.wait().await;
    answered().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_profile::command_line::MARKER;

    use super::names::{BENCH_NAME, BENCH_UNIT};

    const UNIT: &str = include_str!("../../../units/system/bench-prepd.service");
    const AT_BOOT: &str = include_str!("../../../units/system/bench-prep.service");
    const ACTIVATION: &str =
        include_str!("../../../units/system/dbus-1/org.workloadguard.BenchPrep1.service");
    const POLICY: &str =
        include_str!("../../../units/system/dbus-1/org.workloadguard.BenchPrep1.conf");

    #[test]
    fn the_files_that_are_installed_mean_the_same_names() {
        let has = |text: &str, line: String| {
            assert!(text.lines().any(|known| known.trim() == line), "{line}");
        };
        has(UNIT, "Type=dbus".into());
        has(UNIT, format!("BusName={BENCH_NAME}"));
        has(ACTIVATION, format!("Name={BENCH_NAME}"));
        has(ACTIVATION, format!("SystemdService={BENCH_UNIT}"));
        has(POLICY, format!("<allow own=\"{BENCH_NAME}\"/>"));
        has(AT_BOOT, format!("ConditionKernelCommandLine={MARKER}"));
    }
}
