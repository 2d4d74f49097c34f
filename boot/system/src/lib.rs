//! What the bench profiles touch: topology, kernel knobs, interrupt counters, boot entries.
//!
//! Each reader and writer takes a [`root::Root`], so that a recorded tree can stand in for the machine.

pub mod affinity;
pub mod apply;
pub mod audit;
pub mod boot;
pub mod canary;
pub mod entries;
pub mod hands;
pub mod knobs;
pub mod machine;
pub mod originals;
pub mod root;
pub mod run;
pub mod snapshot;
pub mod status;
pub mod swap;
pub mod topology;
