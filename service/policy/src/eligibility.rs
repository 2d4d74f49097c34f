//! Which processes stay where they are.

use serde::{Deserialize, Serialize};

/// What is known of a process when it is about to be moved. Gathered by `guard-system`, judged here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Real, effective or saved user id differs from the guard's user: the foreign one.
    pub foreign_uid: Option<u32>,
    /// No user address space (`PF_KTHREAD` in field 9 of `/proc/PID/stat`).
    pub kernel_thread: bool,
    /// `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE` in any thread.
    pub realtime: bool,
    /// Leads its session and has a controlling terminal: a terminal's shell.
    pub terminal_leader: bool,
    /// `argv[0]` starts with `-`: a login shell.
    pub login_shell: bool,
    /// A systemd manager: PID 1, or the user manager.
    pub manager: bool,
    /// The bus (dbus-daemon, dbus-broker) of the user or of the system.
    pub bus: bool,
    /// The guard itself.
    pub guard: bool,
    /// What its unit is.
    pub unit: UnitFacts,
}

/// What is known of the unit that a process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// Its name, such as `app-foo.scope`; empty when unknown.
    pub name: String,
    /// It is the main or control process of a service.
    pub main_or_control: bool,
    /// It is not the main process of a service with `NotifyAccess=all` or `exec`.
    pub notifier: bool,
    /// The unit is in `session-N.scope`, `system.slice` or anywhere outside the user manager's subtree.
    pub outside_user_manager: bool,
    /// The scope is a Flatpak's or a snap's, by its name.
    pub sandbox: bool,
}

/// Who wants the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The guard, by detection.
    Detection,
    /// A person or an app, in so many words.
    Explicit,
}

/// Why a process is left where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NeverMoved {
    /// Another user's.
    #[error("it runs as another user")]
    ForeignUser,
    /// Kernel thread.
    #[error("it is a kernel thread")]
    KernelThread,
    /// Real-time.
    #[error("it has a real-time scheduling policy, which a CPU budget would break")]
    Realtime,
    /// Manager.
    #[error("it is a systemd manager")]
    Manager,
    /// Bus.
    #[error("it is the message bus")]
    Bus,
    /// The guard.
    #[error("it is the guard itself")]
    Guard,
    /// Flatpak or snap.
    #[error("its Flatpak or snap scope is its identity for portals and permissions")]
    Sandbox,
    /// Main or control process.
    #[error("it is the main or control process of a service, by which systemd tracks that service")]
    ServiceMain,
    /// Notifier.
    #[error("its service takes status messages from it, which would be lost after a move")]
    Notifier,
    /// Terminal's shell.
    #[error("it leads its terminal session; its children are moved, the shell is not")]
    TerminalLeader,
    /// Login shell.
    #[error("it is a login shell; its children are moved, the shell is not")]
    LoginShell,
    /// Outside.
    #[error("it could be taken out of its session or system unit but never be put back")]
    OutsideUserManager,
}

/// Whether a process is left where it is, and why. The first reason that applies, gravest first.
///
/// An explicit wish is refused only for the reasons up to [`NeverMoved::Sandbox`]; the rest have a
/// one-way consequence that the answer tells.
pub fn never_moved(facts: &Facts, intent: Intent) -> Option<NeverMoved> {
    let always = [
        (facts.foreign_uid.is_some(), NeverMoved::ForeignUser),
        (facts.kernel_thread, NeverMoved::KernelThread),
        (facts.realtime, NeverMoved::Realtime),
        (facts.manager, NeverMoved::Manager),
        (facts.bus, NeverMoved::Bus),
        (facts.guard, NeverMoved::Guard),
        (facts.unit.sandbox, NeverMoved::Sandbox),
    ];
    let by_detection = [
        (
            facts.unit.outside_user_manager,
            NeverMoved::OutsideUserManager,
        ),
        (facts.unit.main_or_control, NeverMoved::ServiceMain),
        (facts.unit.notifier, NeverMoved::Notifier),
        (facts.login_shell, NeverMoved::LoginShell),
        (facts.terminal_leader, NeverMoved::TerminalLeader),
    ];
    let first = |list: &[(bool, NeverMoved)]| {
        list.iter()
            .find(|(applies, _)| *applies)
            .map(|(_, why)| *why)
    };
    first(&always).or_else(|| match intent {
        Intent::Explicit => None,
        Intent::Detection => first(&by_detection),
    })
}
