//! `bench plan`.

use bench_profile::planner;
use bench_system::root::Root;
use bench_system::topology;

use super::machine::failed;
use crate::error::CliError;

/// Prints the proposal; it writes nothing.
pub fn run(root: &Root) -> Result<u8, CliError> {
    let topology = topology::read(root).map_err(failed)?;
    let plan = planner::plan(&topology).map_err(failed)?;
    crate::print(&plan.text())?;
    Ok(0)
}
