//! `workload-guard bench …`: what runs as the caller runs here, and what changes the machine is asked of the service.

mod canary;
mod compare;
mod config;
mod entries;
mod knobs;
mod machine;
mod plan;
mod reboot;
mod run;
mod service;
mod status;

use std::process::ExitCode;

use bench_profile::requested::Options;
use bench_system::root::Root;

use crate::args::BenchCommand;
use crate::error::CliError;

/// Carries it out. These commands have exit statuses of their own, which their help lists.
pub fn main(command: &BenchCommand) -> ExitCode {
    match perform(command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("workload-guard: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn perform(command: &BenchCommand) -> Result<u8, CliError> {
    let root = Root::new("/");
    match command {
        BenchCommand::Status { expect, word, json } => status::run(&root, expect.or(*word), *json),
        BenchCommand::Apply {
            profile,
            boost,
            smt,
            keep_housekeeping_cores,
            json,
        } => {
            let options = Options {
                boost: *boost,
                smt: *smt,
                keep_housekeeping: *keep_housekeeping_cores,
            };
            service::run(&service::Request::Apply(*profile, options), *json)
        }
        BenchCommand::Restore { json } => service::run(&service::Request::Restore, *json),
        BenchCommand::Compare {
            first,
            second,
            json,
        } => compare::run(&root, first, second.as_deref(), *json),
        BenchCommand::Run { cpus, command } => run::run(&root, cpus.as_ref(), command),
        BenchCommand::Canary {
            cpus,
            divisor,
            json,
        } => canary::run(&root, cpus.as_ref(), *divisor, *json),
        BenchCommand::Plan { json } => plan::run(&root, *json),
        BenchCommand::Config {
            import: Some(file), ..
        } => config::import(file),
        BenchCommand::Config { json, .. } => config::run(&root, *json),
        BenchCommand::Which => which(&root),
        BenchCommand::BootEntries { action } => entries::run(action),
        BenchCommand::Reboot { once } => reboot::run(*once),
    }
}

/// Whether this boot is in a profile, and in which.
fn which(root: &Root) -> Result<u8, CliError> {
    match machine::booted(root)? {
        Some(profile) => crate::print(&format!("{profile}\n")).map(|()| 0),
        None => Err(CliError::Failed(
            "this boot is in no benchmark profile: its kernel command line has no bench_profile"
                .into(),
        )),
    }
}
