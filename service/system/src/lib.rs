//! Everything of the guard that touches the machine: `/proc`, control groups, and systemd over D-Bus.
//!
//! Two halves. Sensing ([`proc`], [`cgroup`], [`sampler`], [`exec_events`], [`facts`], [`host`], [`slices`]) reads;
//! moving ([`mover`], [`units`], [`watch`]) asks systemd over [`bus`]. Neither decides anything: that is `guard-policy`.
//! Every reader takes its root as an argument, so that a recorded tree can stand in for the machine.
//! Nothing here writes to a control group.

pub mod bus;
pub mod cgroup;
pub mod clock;
pub mod exec_events;
pub mod facts;
pub mod host;
pub mod mover;
pub mod proc;
pub mod profile;
pub mod sampler;
pub mod sched_ext;
pub mod slices;
pub mod telemetry;
pub mod units;
pub mod watch;
