//! The errors of `org.workloadguard.BenchPrep1`, by name.

/// What the bench service answers when it does not do what was asked.
///
/// The text says what was refused and the way out; scripts go by the name.
#[derive(Clone, Debug, PartialEq, zbus::DBusError)]
#[zbus(prefix = "org.workloadguard.Error")]
pub enum BenchError {
    /// The bus itself failed.
    #[zbus(error)]
    ZBus(zbus::Error),
    /// polkit does not allow it to this caller, or cannot be asked.
    NotAuthorized(String),
    /// No such profile, or this boot is in none.
    WrongProfile(String),
    /// The machine file or an option is wrong; nothing was changed.
    InvalidSettings(String),
    /// The kernel did not take or keep a setting.
    KnobFailed(String),
    /// Work does not spread over the CPUs that are to be measured on.
    CanaryFailed(String),
    /// There is no boot loader that could do it.
    UnsupportedLoader(String),
    /// Nothing in the boot loader's files is what the machine file names, or they cannot be understood.
    ConfigUnmatched(String),
    /// A file of the boot loader could not be read or written.
    EntriesFailed(String),
    /// Another caller's change is under way.
    Busy(String),
}

impl BenchError {
    /// The text for a person, without the error's name.
    pub fn text(&self) -> String {
        match self {
            BenchError::ZBus(error) => error.to_string(),
            BenchError::NotAuthorized(text)
            | BenchError::WrongProfile(text)
            | BenchError::InvalidSettings(text)
            | BenchError::KnobFailed(text)
            | BenchError::CanaryFailed(text)
            | BenchError::UnsupportedLoader(text)
            | BenchError::ConfigUnmatched(text)
            | BenchError::EntriesFailed(text)
            | BenchError::Busy(text) => text.clone(),
        }
    }
}
