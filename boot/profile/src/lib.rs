//! What a benchmark profile is, pure: no I/O, no path of its own, no thread, no clock.
//!
//! [`machine::Machine`] says which CPUs a host gives to measuring; [`profile::Profile`] is the question
//! that a boot answers; [`knob::Knob`] is one setting of the kernel with what was asked, what is there
//! and what that means. [`planner::plan`] proposes a machine for a [`topology::Topology`]; [`entries`] reads and
//! writes the boot entries of the profiles.

pub mod command_line;
pub mod comparability;
pub mod cpus;
pub mod entries;
pub mod knob;
pub mod machine;
pub mod planner;
pub mod profile;
pub mod requested;
pub mod topology;
