//! Proxies of just those members of systemd that the guard calls (org.freedesktop.systemd1(5)).

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

use zvariant::{OwnedObjectPath, OwnedValue, Value};

/// The well-known name of a systemd manager, on the user bus and on the system bus alike.
pub const SYSTEMD_NAME: &str = "org.freedesktop.systemd1";

/// A row of `ListUnitsByPatterns`: name, description, load, active and sub state, following unit,
/// object path, job id, job type, job path.
pub type UnitRow = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

/// systemd's manager.
#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1",
    gen_blocking = false
)]
pub trait Manager {
    /// Creates and starts a transient unit; answers its job, before the job has run.
    fn start_transient_unit(
        &self,
        name: &str,
        mode: &str,
        properties: &[(&str, Value<'_>)],
        aux: &[(&str, &[(&str, Value<'_>)])],
    ) -> zbus::Result<OwnedObjectPath>;

    /// Moves processes into a delegated, active unit; `subcgroup` is absolute, or empty for its root.
    fn attach_processes_to_unit(
        &self,
        name: &str,
        subcgroup: &str,
        pids: &[u32],
    ) -> zbus::Result<()>;

    /// Changes properties of a loaded unit; with `runtime` until the user logs out.
    fn set_unit_properties(
        &self,
        name: &str,
        runtime: bool,
        properties: &[(&str, Value<'_>)],
    ) -> zbus::Result<()>;

    /// Starts a unit; answers the job.
    fn start_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;

    /// Stops a unit; answers the job.
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;

    /// Clears the `failed` state of a unit.
    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;

    /// The object of a loaded unit; `NoSuchUnit` when it is not loaded.
    fn get_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;

    /// The object of a unit, loading it from disk when needed.
    fn load_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;

    /// The unit that a process belongs to.
    #[zbus(name = "GetUnitByPID")]
    fn get_unit_by_pid(&self, pid: u32) -> zbus::Result<OwnedObjectPath>;

    /// The loaded units in these states whose names match these globs.
    fn list_units_by_patterns(
        &self,
        states: &[&str],
        patterns: &[&str],
    ) -> zbus::Result<Vec<UnitRow>>;

    /// Asks for unit and job signals.
    fn subscribe(&self) -> zbus::Result<()>;

    /// Reads all unit files again.
    fn reload(&self) -> zbus::Result<()>;

    /// A job ended; `result` is `done` or what went wrong.
    #[zbus(signal)]
    fn job_removed(
        &self,
        id: u32,
        job: OwnedObjectPath,
        unit: String,
        result: String,
    ) -> zbus::Result<()>;

    /// A unit was unloaded. Between `Reloading(true)` and `Reloading(false)` this comes for every unit.
    #[zbus(signal)]
    fn unit_removed(&self, id: String, unit: OwnedObjectPath) -> zbus::Result<()>;

    /// A reload begins or has ended.
    #[zbus(signal)]
    fn reloading(&self, active: bool) -> zbus::Result<()>;

    /// Such as `257.13-1~deb13u1`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> zbus::Result<String>;

    /// The manager's own control group, relative to the cgroup mount.
    #[zbus(property(emits_changed_signal = "false"))]
    fn control_group(&self) -> zbus::Result<String>;
}

/// `org.freedesktop.DBus.Properties` of a systemd unit, in one call per interface.
#[zbus::proxy(
    interface = "org.freedesktop.DBus.Properties",
    default_service = "org.freedesktop.systemd1",
    assume_defaults = false,
    gen_blocking = false
)]
pub trait UnitProperties {
    /// Every property of one interface of the unit.
    fn get_all(
        &self,
        interface: &str,
    ) -> zbus::Result<std::collections::HashMap<String, OwnedValue>>;

    /// One property.
    fn get(&self, interface: &str, name: &str) -> zbus::Result<OwnedValue>;
}

/// Interface of every unit, for [`UnitPropertiesProxy`].
pub const UNIT_INTERFACE: &str = "org.freedesktop.systemd1.Unit";
/// Interface of scopes.
pub const SCOPE_INTERFACE: &str = "org.freedesktop.systemd1.Scope";
/// Interface of slices.
pub const SLICE_INTERFACE: &str = "org.freedesktop.systemd1.Slice";
/// Interface of services.
pub const SERVICE_INTERFACE: &str = "org.freedesktop.systemd1.Service";

/// Error names of systemd that decide what the guard does next. Texts differ between versions; names do not.
pub mod error_name {
    /// A PID of the list is gone.
    pub const NO_SUCH_PROCESS: &str = "org.freedesktop.DBus.Error.UnixProcessIdUnknown";
    /// A unit of that name is loaded, or has a file.
    pub const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";
    /// No unit of that name is loaded.
    pub const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
    /// The slice is masked.
    pub const UNIT_MASKED: &str = "org.freedesktop.systemd1.UnitMasked";
    /// The kernel refused the move: another user's process, or a cgroup outside ours.
    pub const ACCESS_DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";
    /// A sub-cgroup is gone.
    pub const FILE_NOT_FOUND: &str = "org.freedesktop.DBus.Error.FileNotFound";
    /// The cgroup has children with controllers enabled, so that it takes no process.
    pub const BUSY: &str = "System.Error.EBUSY";
    /// An unknown property, or one that cannot be set there.
    pub const PROPERTY_READ_ONLY: &str = "org.freedesktop.DBus.Error.PropertyReadOnly";
    /// The manager went away in the middle of the call: it may or may not have been carried out.
    pub const NO_REPLY: &str = "org.freedesktop.DBus.Error.NoReply";
    /// A wrong argument.
    pub const INVALID_ARGS: &str = "org.freedesktop.DBus.Error.InvalidArgs";
    /// `Subscribe` was called before; harmless.
    pub const ALREADY_SUBSCRIBED: &str = "org.freedesktop.systemd1.AlreadySubscribed";
}
