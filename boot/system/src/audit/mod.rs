//! The audit of a run: what reached the CPUs that were measured on, between two looks.
//!
//! Numbered hardware interrupts of devices are judged. Interrupts between CPUs, the local timer, and whatever a
//! CPU raises for itself are told and not judged: ordinary wakeups make them.

mod interrupts;
mod judge;
mod look;
#[cfg(test)]
mod tests;
mod text;

pub use interrupts::{BadInterrupts, Interrupts, Kind, Row};
pub use judge::{Audit, Hit, Note, compare};
pub use look::{AuditError, Look, look};
pub use text::text;
