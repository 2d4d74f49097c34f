//! `org.workloadguard.Workload1`: one object per adopted process tree.

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

use std::future::Future;
use std::sync::Arc;

use crate::error::GuardError;

/// What serves [`Workload1`]. Getters read the last published state and cannot fail.
pub trait Workload1Backend: Send + Sync + 'static {
    /// Behind `Release`: answers the control group that the processes are in now.
    fn release(&self) -> impl Future<Output = Result<String, GuardError>> + Send;
    /// Behind `PIDs`.
    fn pids(&self) -> Vec<u32>;
    /// Behind `RootPID`.
    fn root_pid(&self) -> u32;
    /// Behind `Class`.
    fn class(&self) -> String;
    /// Behind `Reason`.
    fn reason(&self) -> String;
    /// Behind `ReasonText`.
    fn reason_text(&self) -> String;
    /// Behind `Cpu`.
    fn cpu(&self) -> f64;
    /// Behind `Unit`.
    fn unit(&self) -> String;
    /// Behind `SourceControlGroup`.
    fn source_control_group(&self) -> String;
    /// Behind `ControlGroup`.
    fn control_group(&self) -> String;
    /// Behind `Command`.
    fn command(&self) -> String;
    /// Behind `Since`.
    fn since(&self) -> u64;
}

/// An object below [`crate::names::WORKLOADS_PATH`].
pub struct Workload1<B>(pub Arc<B>);

/// One process tree that the guard, or a person through it, put into a class.
#[zbus::interface(
    name = "org.workloadguard.Workload1",
    proxy(
        default_service = "org.workloadguard.Guard1",
        assume_defaults = false,
        gen_blocking = false,
    )
)]
impl<B: Workload1Backend> Workload1<B> {
    /// Ends the workload and brings its processes back to where they came from.
    ///
    /// @control_group: where they are now, relative to the cgroup mount.
    #[zbus(out_args("control_group"))]
    async fn release(&self) -> Result<String, GuardError> {
        self.0.release().await
    }

    /// Its processes at the last sample.
    #[zbus(property(emits_changed_signal = "false"), name = "PIDs")]
    fn pids(&self) -> Vec<u32> {
        self.0.pids()
    }

    /// The process that it was adopted by.
    #[zbus(property(emits_changed_signal = "const"), name = "RootPID")]
    fn root_pid(&self) -> u32 {
        self.0.root_pid()
    }

    /// Its class, such as `heavy`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn class(&self) -> String {
        self.0.class()
    }

    /// `known-heavy`, `sustained-cpu`, `requested`, `placed` or `unknown`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn reason(&self) -> String {
        self.0.reason()
    }

    /// The reason in words: the rule, the counters, or what the caller said.
    #[zbus(property(emits_changed_signal = "const"))]
    fn reason_text(&self) -> String {
        self.0.reason_text()
    }

    /// CPU of the whole tree over the last sample, in percent of one logical CPU.
    #[zbus(property(emits_changed_signal = "false"))]
    fn cpu(&self) -> f64 {
        self.0.cpu()
    }

    /// The scope that holds it.
    #[zbus(property(emits_changed_signal = "const"))]
    fn unit(&self) -> String {
        self.0.unit()
    }

    /// The control group that it came from, relative to the cgroup mount.
    #[zbus(property(emits_changed_signal = "const"))]
    fn source_control_group(&self) -> String {
        self.0.source_control_group()
    }

    /// The control group that it is in.
    #[zbus(property(emits_changed_signal = "const"))]
    fn control_group(&self) -> String {
        self.0.control_group()
    }

    /// Command line of its root process at the last sample, made printable.
    #[zbus(property(emits_changed_signal = "false"))]
    fn command(&self) -> String {
        self.0.command()
    }

    /// When it was moved, in microseconds since 1970.
    #[zbus(property(emits_changed_signal = "const"))]
    fn since(&self) -> u64 {
        self.0.since()
    }
}
