//! Whether the machine is in the state of a profile, and what it is: facts, then a judgement.
//!
//! Everything is read as an ordinary user can read it. What cannot be read is said, and is no error: a report has to
//! be possible anywhere.

mod environment;
mod facts;
mod frequency;
mod judge;
#[cfg(test)]
mod tests;
mod units;

pub use environment::Environment;
pub use facts::Facts;
pub use judge::{Finding, Level, judge};
