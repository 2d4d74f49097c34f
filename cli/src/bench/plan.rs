//! `bench plan`.

use bench_profile::machine::{Machine, Reasons};
use bench_profile::planner;
use bench_system::root::Root;
use bench_system::topology;
use serde::Serialize;

use super::machine::failed;
use crate::error::CliError;

/// The JSON of `bench plan`; its help documents the keys.
#[derive(Serialize)]
struct View<'a> {
    machine: &'a Machine,
    reasons: &'a Reasons,
    notes: &'a [String],
}

/// Prints the proposal; it writes nothing.
pub fn run(root: &Root, json: bool) -> Result<u8, CliError> {
    let topology = topology::read(root).map_err(failed)?;
    let plan = planner::plan(&topology).map_err(failed)?;
    let text = if json {
        crate::render::to_json(&View {
            machine: &plan.machine,
            reasons: &plan.reasons,
            notes: &plan.notes,
        })
    } else {
        plan.text()
    };
    crate::print(&text)?;
    Ok(0)
}
