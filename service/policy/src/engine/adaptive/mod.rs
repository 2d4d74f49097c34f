//! Adaptive routing: what each command usually uses, learned from every sample of its processes, and the
//! processes whose sample is far above that.
//!
//! A sample is scored by what was known before it. A process that a sample of the sampler does not show
//! used nothing, which is a sample like any other.

mod baseline;
mod command;
mod learn;
mod learned;

pub use baseline::Baseline;
pub(super) use command::command_of;
pub(super) use learned::Scored;
pub use learned::{Learned, MAX_COMMANDS, Row};
