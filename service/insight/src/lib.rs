//! What happened and why, pure: no I/O, no thread, no clock.
//!
//! [`snapshot`] is one line of the history, [`history`] the whole file, [`summary`] what a stretch of it adds
//! up to, [`throttling`] what budgets cost each workload, [`diagnose`] what follows from it and from the machine, [`openmetrics`] the text that a
//! monitoring system reads.

pub mod diagnose;
pub mod history;
pub mod openmetrics;
pub mod profile;
pub mod snapshot;
pub mod summary;
pub mod throttling;
