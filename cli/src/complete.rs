//! What the shells complete beyond words of ours: processes, and what the guard has. It is asked only where it runs
//! already, and not for long.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use async_io::Timer;
use bench_profile::profile::Profile;
use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use futures_lite::FutureExt;
use guard_policy::printable::command_line;
use serde::de::DeserializeOwned;
use workload_guard_dbus::names::{GUARD_NAME, GUARD_PATH};
use workload_guard_dbus::types::{ClassRow, HoldRow, WatchedRow, WorkloadRow};
use zbus::proxy::{CacheProperties, MethodFlags};
use zvariant::{DynamicType, OwnedValue, Type};

use crate::args::Cli;
use crate::{bus, manual};

/// Set by the scripts, in the environment of a completion alone.
const VARIABLE: &str = "_WORKLOAD_GUARD_COMPLETE";
const PROGRAM: &str = "workload-guard";
const GUARD_INTERFACE: &str = "org.workloadguard.Guard1";
/// A person waits with a finger on the key.
const PATIENCE: Duration = Duration::from_millis(300);
/// What of a command is shown beside its PID.
const SHOWN: usize = 60;

/// Answers a shell and ends, when it is a shell that asks.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .complete();
}

/// The script that has a shell ask. It is read from a file of the shell's own folder, or by `eval`.
pub fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let shell: &dyn EnvCompleter = shells.completer(shell).expect("clap knows these shells");
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell.name() == "zsh" {
        // zsh loads the file as the function that completes: the first time it has to complete, too.
        script.extend_from_slice(
            b"if [[ ${funcstack[1]} == _workload-guard ]]; then _clap_dynamic_completer_workload_guard; fi\n",
        );
    }
    Ok(script)
}

/// Processes of the caller's user.
pub fn processes() -> Vec<CompletionCandidate> {
    if is_elsewhere() {
        return Vec::new();
    }
    let uid = nix::unistd::geteuid().as_raw();
    let own = std::process::id();
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<(u32, String)> = folders
        .filter_map(|folder| {
            let pid: u32 = folder.file_name().to_str()?.parse().ok()?;
            let ours = folder.metadata().ok()?.uid() == uid && pid != own;
            let line = ours.then(|| std::fs::read(folder.path().join("cmdline")).ok())??;
            let words: Vec<_> = line
                .split(|byte| *byte == 0)
                .map(String::from_utf8_lossy)
                .collect();
            (!line.is_empty()).then(|| (pid, command_line(&words)))
        })
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .map(|(pid, command)| candidate(pid.to_string(), &command))
        .collect()
}

/// Roots of workloads.
pub fn workloads() -> Vec<CompletionCandidate> {
    let rows: Vec<WorkloadRow> = ask("ListWorkloads");
    rows.into_iter()
        .map(|row| {
            candidate(
                row.pid.to_string(),
                &format!("{}: {}", row.class, row.command),
            )
        })
        .collect()
}

/// Holds that can be ended.
pub fn holds() -> Vec<CompletionCandidate> {
    let rows: Vec<HoldRow> = ask("ListHolds");
    rows.into_iter()
        .map(|row| {
            let what = [row.kind.as_str(), &row.subject, &row.reason];
            candidate(row.id.to_string(), &what.join(" "))
        })
        .collect()
}

/// The classes of the settings.
pub fn classes() -> Vec<CompletionCandidate> {
    let rows: Vec<ClassRow> = property("Classes");
    rows.into_iter()
        .map(|row| candidate(row.name, &row.slice))
        .collect()
}

/// Slices that are watched, and those that a desktop has.
pub fn slices() -> Vec<CompletionCandidate> {
    let rows: Vec<WatchedRow> = property("Watched");
    let mut names: Vec<String> = rows.into_iter().map(|row| row.unit).collect();
    names.extend(["app.slice", "background.slice", "session.slice"].map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| candidate(name, "")).collect()
}

/// Benchmark profiles.
pub fn profiles() -> Vec<CompletionCandidate> {
    Profile::ALL
        .map(|profile| candidate(profile.name().to_owned(), ""))
        .into()
}

/// Pages of the manual.
pub fn pages() -> Vec<CompletionCandidate> {
    manual::names().map(|name| candidate(name, "")).collect()
}

fn candidate(value: String, help: &str) -> CompletionCandidate {
    let help: String = help.trim().chars().take(SHOWN).collect();
    CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
}

/// Whether the command line that is completed is about another machine, whose processes are not these.
fn is_elsewhere() -> bool {
    let option = |word: &OsStr| {
        let word = word.to_string_lossy();
        ["--host", "--machine"]
            .iter()
            .any(|long| word.starts_with(long))
            || (!word.starts_with("--") && (word.starts_with("-H") || word.starts_with("-M")))
    };
    std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(2)
        .any(|word| option(&word))
}

/// What a method answers; nothing where no guard runs.
fn ask<R>(member: &'static str) -> Vec<R>
where
    Vec<R>: DeserializeOwned + Type,
{
    now(async { call(GUARD_INTERFACE, member, &()).await })
}

/// What a property says, likewise.
fn property<R>(name: &'static str) -> Vec<R>
where
    Vec<R>: TryFrom<OwnedValue>,
{
    now(async {
        let value: OwnedValue = call(
            "org.freedesktop.DBus.Properties",
            "Get",
            &(GUARD_INTERFACE, name),
        )
        .await?;
        Vec::try_from(value).ok()
    })
}

fn now<R>(answer: impl Future<Output = Option<Vec<R>>>) -> Vec<R> {
    if is_elsewhere() {
        return Vec::new();
    }
    let late = async {
        Timer::after(PATIENCE).await;
        None
    };
    async_io::block_on(answer.or(late)).unwrap_or_default()
}

/// Asks a guard that runs: the bus is told not to start one.
async fn call<B, R>(interface: &'static str, member: &'static str, body: &B) -> Option<R>
where
    B: serde::Serialize + DynamicType,
    R: DeserializeOwned + Type,
{
    let builder = zbus::connection::Builder::session().ok()?;
    let bus = builder.internal_executor(false).build().await.ok()?;
    let asked = async {
        let proxy: zbus::Proxy<'_> = zbus::proxy::Builder::new(&bus)
            .destination(GUARD_NAME)
            .ok()?
            .path(GUARD_PATH)
            .ok()?
            .interface(interface)
            .ok()?
            .cache_properties(CacheProperties::No)
            .build()
            .await
            .ok()?;
        let flags = MethodFlags::NoAutoStart.into();
        proxy.call_with_flags(member, flags, body).await.ok()?
    };
    bus::driven(&bus, asked).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_is_told_to_ask_this_program() {
        for shell in ["bash", "zsh", "fish"] {
            let text = String::from_utf8(script(shell).unwrap()).unwrap();
            assert!(text.contains(&format!("{VARIABLE}=")), "{text}");
            assert!(text.contains("workload-guard"), "{text}");
        }
    }

    #[test]
    fn processes_are_the_callers_with_their_command_lines() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000.5")
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        // A program that was just started has no command line yet.
        let found = loop {
            let help = processes()
                .into_iter()
                .find(|found| found.get_value() == OsStr::new(&pid))
                .and_then(|found| found.get_help().map(ToString::to_string));
            if let Some(help) = help {
                break help;
            }
            assert!(child.try_wait().unwrap().is_none(), "it ended");
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, "sleep 1000.5");
    }
}
