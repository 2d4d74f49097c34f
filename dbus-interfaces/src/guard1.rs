//! `org.workloadguard.Guard1`: the guard itself.

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs, clippy::too_many_arguments)]

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use zbus::message::Header;
use zbus::names::OwnedUniqueName;
use zbus::object_server::SignalEmitter;
use zvariant::{OwnedFd, OwnedObjectPath, OwnedValue};

use crate::error::GuardError;
use crate::types::{
    ClassRow, Explained, HoldRow, SettingRow, StatisticsRow, WatchedRow, WorkloadRow,
};

/// What serves [`Guard1`]. Methods answer when the change is done and was read back; getters read the
/// last published state and cannot fail.
pub trait Guard1Backend: Send + Sync + 'static {
    /// Behind `Attach`. `caller` is absent on a connection without a bus.
    fn attach(
        &self,
        caller: Option<OwnedUniqueName>,
        pids: Vec<u32>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<OwnedObjectPath, GuardError>> + Send;
    /// Behind `AttachFds`.
    fn attach_fds(
        &self,
        caller: Option<OwnedUniqueName>,
        pidfds: Vec<OwnedFd>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<OwnedObjectPath, GuardError>> + Send;
    /// Behind `Route`.
    fn route(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        class: String,
    ) -> impl Future<Output = Result<OwnedObjectPath, GuardError>> + Send;
    /// Behind `Release`: answers the control group that the processes are in now.
    fn release(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
    ) -> impl Future<Output = Result<String, GuardError>> + Send;
    /// Behind `Watch` (`add`) and `Unwatch`: answers what is watched then.
    fn watch(
        &self,
        caller: Option<OwnedUniqueName>,
        units: Vec<String>,
        add: bool,
    ) -> impl Future<Output = Result<Vec<String>, GuardError>> + Send;
    /// Behind `Explain`.
    fn explain(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
    ) -> impl Future<Output = Result<Explained, GuardError>> + Send;
    /// Behind `Reload`.
    fn reload(&self) -> impl Future<Output = Result<(), GuardError>> + Send;
    /// Behind `Pause`: answers the hold's cookie.
    fn pause(
        &self,
        caller: Option<OwnedUniqueName>,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<u64, GuardError>> + Send;
    /// Behind `Resume`: answers how many pauses it ended.
    fn resume(&self) -> impl Future<Output = Result<u32, GuardError>> + Send;
    /// Behind `Exempt`: answers the hold's cookie.
    fn exempt(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<u64, GuardError>> + Send;
    /// Behind `Pin`: answers the hold's cookie.
    fn pin(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<u64, GuardError>> + Send;
    /// Behind `ReleaseHold`.
    fn release_hold(&self, hold: u64) -> impl Future<Output = Result<(), GuardError>> + Send;
    /// Behind `ListHolds` and `Holds`.
    fn holds(&self) -> Vec<HoldRow>;
    /// Behind `ListWorkloads`.
    fn workloads(&self) -> Vec<WorkloadRow>;
    /// Behind `Settings`.
    fn settings(&self) -> Vec<SettingRow>;
    /// Behind `Statistics`.
    fn statistics(&self) -> Vec<StatisticsRow>;
    /// Behind `State`.
    fn state(&self) -> String;
    /// Behind `StateReasons`.
    fn state_reasons(&self) -> Vec<String>;
    /// Behind `Capabilities`.
    fn capabilities(&self) -> Vec<String>;
    /// Behind `ExecEvents`.
    fn exec_events(&self) -> String;
    /// Behind `ExecEventsLost`.
    fn exec_events_lost(&self) -> u64;
    /// Behind `Watched`.
    fn watched(&self) -> Vec<WatchedRow>;
    /// Behind `Classes`.
    fn classes(&self) -> Vec<ClassRow>;
    /// Behind `RoutedTotal`.
    fn routed_total(&self) -> u64;
    /// Behind `RecoveredTotal`.
    fn recovered_total(&self) -> u64;
    /// Behind `FailedTotal`.
    fn failed_total(&self) -> u64;
}

/// The object at [`crate::names::GUARD_PATH`].
pub struct Guard1<B>(pub Arc<B>);

fn sender(header: &Header<'_>) -> Option<OwnedUniqueName> {
    header.sender().map(|name| name.to_owned().into())
}

/// Watches the processes of the protected slices, moves heavy ones into slices with a budget, and
/// brings them back when they calm down.
#[zbus::interface(
    name = "org.workloadguard.Guard1",
    proxy(
        default_service = "org.workloadguard.Guard1",
        default_path = "/org/workloadguard/Guard1",
        gen_blocking = false,
    )
)]
impl<B: Guard1Backend> Guard1<B> {
    /// Puts processes, with their descendants, into a class and keeps them there until they are
    /// released. The first one is the root of the new workload; PID 0 is the caller.
    ///
    /// @pids: 1 to 256 processes of the caller's user.
    /// @class: `protected`, `heavy`, or another class of the settings.
    /// @options: `reason` (s): why, for status; at most 200 bytes. `lease` (b): the workload is released
    /// when the caller leaves the bus. `duration` (u): it is released after so many seconds, of which a
    /// suspended machine counts each. An unknown option is refused.
    /// @workload: the new object; it has org.workloadguard.Workload1.
    ///
    /// Errors: NoSuchProcess, NeverMoved, OutOfReach, UnknownClass, LimitExceeded, InvalidSettings,
    /// SystemdRefused, Timeout.
    #[zbus(out_args("workload"))]
    async fn attach(
        &self,
        #[zbus(header)] header: Header<'_>,
        pids: Vec<u32>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.0.attach(sender(&header), pids, class, options).await
    }

    /// As Attach, with a pidfd for each process: no PID can be mistaken for its successor.
    ///
    /// @pidfds: 1 to 16 descriptors from pidfd_open(2).
    /// @class: as for Attach.
    /// @options: as for Attach.
    /// @workload: as for Attach.
    #[zbus(out_args("workload"))]
    async fn attach_fds(
        &self,
        #[zbus(header)] header: Header<'_>,
        pidfds: Vec<OwnedFd>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.0
            .attach_fds(sender(&header), pidfds, class, options)
            .await
    }

    /// Routes a process with its descendants as detection would: it comes back when it calms down.
    ///
    /// @pid: the root of the tree; 0 is the caller.
    /// @class: the class to route into, usually `heavy`.
    /// @workload: as for Attach.
    #[zbus(out_args("workload"))]
    async fn route(
        &self,
        #[zbus(header)] header: Header<'_>,
        pid: u32,
        class: String,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.0.route(sender(&header), pid, class).await
    }

    /// Ends the workload that a process is in, and brings its processes back to where they came from.
    ///
    /// @pid: any process of the workload; 0 is the caller.
    /// @control_group: where they are now, relative to the cgroup mount.
    ///
    /// Errors: NoSuchWorkload, SystemdRefused, Timeout.
    #[zbus(out_args("control_group"))]
    async fn release(
        &self,
        #[zbus(header)] header: Header<'_>,
        pid: u32,
    ) -> Result<String, GuardError> {
        self.0.release(sender(&header), pid).await
    }

    /// Holds detection, and bringing back what calmed down, of everything; State is `paused` then.
    /// Attach, Route and Release still work. With several at once, the last that ends counts.
    ///
    /// @options: `reason` (s): why, at most 200 bytes. `duration` (u): seconds after which the hold ends,
    /// of which a suspended machine counts each. `lease` (b): it ends when the caller leaves the bus. An
    /// unknown option is refused.
    /// @hold: its cookie, for ReleaseHold.
    ///
    /// Errors: OutOfReach when the caller is in work of another class than protected, LimitExceeded,
    /// InvalidSettings.
    #[zbus(out_args("hold"))]
    async fn pause(
        &self,
        #[zbus(header)] header: Header<'_>,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.0.pause(sender(&header), options).await
    }

    /// Ends every pause, whoever began it.
    ///
    /// @ended: how many there were.
    #[zbus(out_args("ended"))]
    async fn resume(&self) -> Result<u32, GuardError> {
        self.0.resume().await
    }

    /// Has detection leave a process and its descendants alone until the process ends. What detection
    /// routed of them is brought back at once; what was placed stays.
    ///
    /// @pid: the root of the tree; 0 is the caller.
    /// @options: as for Pause.
    /// @hold: as for Pause.
    ///
    /// Errors: NoSuchProcess, and those of Pause. OutOfReach also for another user's process and for the
    /// user manager, below which everything is: Pause holds the whole router.
    #[zbus(out_args("hold"))]
    async fn exempt(
        &self,
        #[zbus(header)] header: Header<'_>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.0.exempt(sender(&header), pid, options).await
    }

    /// Keeps the whole workload that a process is in where it is, however calm it gets, until the process
    /// or the workload ends. Release still works.
    ///
    /// @pid: a process of the workload; 0 is the caller.
    /// @options: as for Pause.
    /// @hold: as for Pause.
    ///
    /// Errors: NoSuchProcess, NoSuchWorkload, and those of Pause.
    #[zbus(out_args("hold"))]
    async fn pin(
        &self,
        #[zbus(header)] header: Header<'_>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.0.pin(sender(&header), pid, options).await
    }

    /// Ends a hold, also one of another client of the same user. The end of a lease releases its workload.
    ///
    /// @hold: its cookie.
    ///
    /// Errors: NoSuchHold.
    async fn release_hold(&self, hold: u64) -> Result<(), GuardError> {
        self.0.release_hold(hold).await
    }

    /// Every hold: cookie, kind (`pause`, `exempt`, `pin`, `lease`), PID and command of what is held,
    /// workload's scope, unique bus name that it is bound to (if any), PID and command of who took it,
    /// reason, since and until when in microseconds since 1970 (0: it does not end by itself).
    #[zbus(out_args("holds"))]
    fn list_holds(&self) -> Vec<HoldRow> {
        self.0.holds()
    }

    /// Every workload: its object, root PID, class, reason, CPU in percent of one logical CPU, source
    /// and present control group, command, since when in microseconds since 1970, and for how many
    /// microseconds its budget held it up (2^64 - 1 where the kernel does not tell).
    #[zbus(out_args("workloads"))]
    fn list_workloads(&self) -> Vec<WorkloadRow> {
        self.0.workloads()
    }

    /// Every setting: key, effective value, and where the value came from.
    #[zbus(out_args("settings"))]
    fn settings(&self) -> Vec<SettingRow> {
        self.0.settings()
    }

    /// What adaptive routing learned of each command: its name, samples, mean and standard deviation of a
    /// process's CPU in percent of one logical CPU, and the last score, negative while there is none.
    #[zbus(out_args("statistics"))]
    fn statistics(&self) -> Vec<StatisticsRow> {
        self.0.statistics()
    }

    /// Watches more slices from now on, by a file of the guard's own among the user's settings
    /// (guard.toml.d/50-watch.toml); no other file is changed.
    ///
    /// @units: 1 to 64 slices, such as `app.slice`, with everything nested in them.
    /// @watched: every slice that is watched now.
    ///
    /// Errors: InvalidSettings, also where a variable or a later file says what is watched and would win.
    /// Nothing is changed then.
    #[zbus(out_args("watched"))]
    async fn watch(
        &self,
        #[zbus(header)] header: Header<'_>,
        units: Vec<String>,
    ) -> Result<Vec<String>, GuardError> {
        self.0.watch(sender(&header), units, true).await
    }

    /// Watches these slices no longer. What was routed from them comes back as before.
    ///
    /// @units: slices that are watched by themselves, as the property Watched lists them.
    /// @watched: every slice that is watched now.
    ///
    /// Errors: InvalidSettings, as for Watch.
    #[zbus(out_args("watched"))]
    async fn unwatch(
        &self,
        #[zbus(header)] header: Header<'_>,
        units: Vec<String>,
    ) -> Result<Vec<String>, GuardError> {
        self.0.watch(sender(&header), units, false).await
    }

    /// Tells why a process is where it is, what is missing before it is moved, and who or what could move it or
    /// bring it back. Any process may be asked about.
    ///
    /// @pid: the process; 0 is the caller.
    /// @verdict: `routed`, `placed`, `moving`, `due`, `counting`, `calm`, `resting`, `held`, `excluded`,
    /// `never-moved`, `out-of-reach` or `not-watched`.
    /// @sentences: the same in words, a sentence each.
    /// @details: `pid` (u), `command` (s), `control_group` (s); where there is such a thing `workload` (o), `rule`
    /// (s: FILE:LINE and name), `hold` (t: its cookie), and the counter that applies: `cpu` (d) and `threshold`
    /// (d) in percent of one logical CPU, `samples` (u) in a row, and `samples_needed` (u); of a workload
    /// `throttled_usec` (t): how long its budget held it up, over all CPUs, where the kernel tells. New keys
    /// may be added.
    ///
    /// Errors: NoSuchProcess; Timeout and SystemdRefused when systemd does not tell the process's unit.
    #[zbus(out_args("verdict", "sentences", "details"))]
    async fn explain(
        &self,
        #[zbus(header)] header: Header<'_>,
        pid: u32,
    ) -> Result<(String, Vec<String>, HashMap<String, OwnedValue>), GuardError> {
        // Spelled out: zbus makes three arguments only of a tuple that it sees.
        self.0.explain(sender(&header), pid).await
    }

    /// Reads the settings again. With InvalidSettings the old ones stay in force.
    async fn reload(&self) -> Result<(), GuardError> {
        self.0.reload().await
    }

    /// The guard's version.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// `normal`, `degraded` or `paused`.
    #[zbus(property)]
    fn state(&self) -> String {
        self.0.state()
    }

    /// Why the state is not normal, a sentence each, with the way out; empty when it is.
    #[zbus(property)]
    fn state_reasons(&self) -> Vec<String> {
        self.0.state_reasons()
    }

    /// The holds, as ListHolds answers them.
    #[zbus(property)]
    fn holds(&self) -> Vec<HoldRow> {
        self.0.holds()
    }

    /// What this machine offers: `cpu-controller`, `pidfds`, `exec-events` and the like.
    #[zbus(property)]
    fn capabilities(&self) -> Vec<String> {
        self.0.capabilities()
    }

    /// Whether the kernel tells of new programs: `active`, or why not, in words; then samples alone see
    /// them.
    #[zbus(property)]
    fn exec_events(&self) -> String {
        self.0.exec_events()
    }

    /// Exec events since the guard started that nobody looked at, since there were too many at once.
    /// Each time a look at everything made good for them.
    #[zbus(property(emits_changed_signal = "false"))]
    fn exec_events_lost(&self) -> u64 {
        self.0.exec_events_lost()
    }

    /// The units whose processes are looked at, and how many processes each holds.
    #[zbus(property(emits_changed_signal = "false"))]
    fn watched(&self) -> Vec<WatchedRow> {
        self.0.watched()
    }

    /// The classes: name, slice, the quota that the kernel enforces (percent of one logical CPU, 0 for
    /// none), the weight that counts between classes, `memory.high` in bytes, `io.weight` and `pids.max` (0
    /// for none), and which of these come from the guard's settings; the others are from unit files.
    #[zbus(property)]
    fn classes(&self) -> Vec<ClassRow> {
        self.0.classes()
    }

    /// Routes since the guard started.
    #[zbus(property(emits_changed_signal = "false"))]
    fn routed_total(&self) -> u64 {
        self.0.routed_total()
    }

    /// Recoveries since the guard started.
    #[zbus(property(emits_changed_signal = "false"))]
    fn recovered_total(&self) -> u64 {
        self.0.recovered_total()
    }

    /// Moves that failed since the guard started.
    #[zbus(property(emits_changed_signal = "false"))]
    fn failed_total(&self) -> u64 {
        self.0.failed_total()
    }

    /// A process tree was moved into a class.
    ///
    /// @workload: its object.
    /// @pid: its root process.
    /// @class: where to.
    /// @reason: `known-heavy`, `sustained-cpu`, `adaptive`, `requested`, `placed` or `unknown`.
    /// @source: the control group that it came from.
    /// @destination: the control group that it is in.
    /// @command: the root's command line, made printable.
    #[zbus(signal)]
    pub async fn routed(
        emitter: &SignalEmitter<'_>,
        workload: OwnedObjectPath,
        pid: u32,
        class: &str,
        reason: &str,
        source: &str,
        destination: &str,
        command: &str,
    ) -> zbus::Result<()>;

    /// A process tree was brought back.
    ///
    /// @workload: the object that it had.
    /// @pid: its root process.
    /// @class: the class that it left.
    /// @destination: the control group that it is in now.
    /// @exact: whether that is the very one that it came from.
    /// @note: in words, what was done instead when it is not.
    #[zbus(signal)]
    pub async fn recovered(
        emitter: &SignalEmitter<'_>,
        workload: OwnedObjectPath,
        pid: u32,
        class: &str,
        destination: &str,
        exact: bool,
        note: &str,
    ) -> zbus::Result<()>;

    /// A workload has ended by itself: its last process has, or somebody stopped it or took it elsewhere.
    ///
    /// @workload: the object that it had.
    /// @pid: its root process.
    /// @class: its class.
    /// @command: the root's command line, made printable.
    #[zbus(signal)]
    pub async fn ended(
        emitter: &SignalEmitter<'_>,
        workload: OwnedObjectPath,
        pid: u32,
        class: &str,
        command: &str,
    ) -> zbus::Result<()>;

    /// A move was tried and did not happen.
    ///
    /// @pid: the root process.
    /// @class: the class of the move.
    /// @error: the error's name, as a method would have answered it.
    /// @text: what went wrong, in words.
    #[zbus(signal)]
    pub async fn move_failed(
        emitter: &SignalEmitter<'_>,
        pid: u32,
        class: &str,
        error: &str,
        text: &str,
    ) -> zbus::Result<()>;
}
