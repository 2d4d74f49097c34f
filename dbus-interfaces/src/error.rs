//! The errors of `org.workloadguard.Guard1`, by name.

/// What the guard answers when it does not do what was asked.
///
/// The text says what was refused and the way out; scripts go by the name.
#[derive(Clone, Debug, PartialEq, zbus::DBusError)]
#[zbus(prefix = "org.workloadguard.Error")]
pub enum GuardError {
    /// The bus itself failed.
    #[zbus(error)]
    ZBus(zbus::Error),
    /// The process is gone, or was never there.
    NoSuchProcess(String),
    /// The process is one that the guard leaves where it is.
    NeverMoved(String),
    /// The process belongs to another user, or to a part of the system that a user manager cannot move.
    OutOfReach(String),
    /// No class of that name.
    UnknownClass(String),
    /// The user manager has no cpu controller, so a budget would not hold.
    NoController(String),
    /// The router is paused.
    Paused(String),
    /// No workload there.
    NoSuchWorkload(String),
    /// No hold with that cookie: it has ended, or there never was one.
    NoSuchHold(String),
    /// Too many at once, too long, or beyond the settings' bounds.
    LimitExceeded(String),
    /// A settings file or an option is wrong; the old settings stay in force.
    InvalidSettings(String),
    /// systemd did not finish in time.
    Timeout(String),
    /// systemd refused.
    SystemdRefused(String),
}

impl GuardError {
    /// The text for a person, without the error's name.
    pub fn text(&self) -> String {
        match self {
            GuardError::ZBus(error) => error.to_string(),
            GuardError::NoSuchProcess(text)
            | GuardError::NeverMoved(text)
            | GuardError::OutOfReach(text)
            | GuardError::UnknownClass(text)
            | GuardError::NoController(text)
            | GuardError::Paused(text)
            | GuardError::NoSuchWorkload(text)
            | GuardError::NoSuchHold(text)
            | GuardError::LimitExceeded(text)
            | GuardError::InvalidSettings(text)
            | GuardError::Timeout(text)
            | GuardError::SystemdRefused(text) => text.clone(),
        }
    }
}
