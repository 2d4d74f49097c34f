//! What scenarios are made of. Running programs, waiting and concluding are those of the guard's scenarios, of which
//! each program uses a part.

#[allow(dead_code)]
#[path = "../../../guard/src/harness/command.rs"]
pub mod command;
#[allow(dead_code)]
#[path = "../../../guard/src/harness/files.rs"]
pub mod files;
#[allow(dead_code)]
#[path = "../../../guard/src/harness/outcome.rs"]
pub mod outcome;
#[allow(dead_code)]
#[path = "../../../guard/src/harness/wait.rs"]
pub mod wait;

pub mod agent;
pub mod boots;
pub mod call;
pub mod kernel;
pub mod prepared;
pub mod product;
pub mod service;
pub mod tree;
pub mod user;
