//! What can go wrong, and the exit status of each.

use workload_guard_dbus::GuardError;

use crate::args::Target;

/// Why the command line does not do what was asked. The text is for a person: what is wrong, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Refused or failed.
    #[error("{0}")]
    Failed(String),
    /// There is nothing to talk to: no bus, no systemd, no guard.
    #[error("{0}")]
    Unavailable(String),
    /// Another user's process, or one out of reach.
    #[error("{0}")]
    NotPermitted(String),
    /// The command of `run` or `protect` exists and cannot be executed.
    #[error("{0}")]
    NotExecutable(String),
    /// The command of `run` or `protect` does not exist.
    #[error("{0}")]
    NotFound(String),
}

impl CliError {
    /// The same, of somebody else's guard.
    pub fn of(self, target: &Target) -> CliError {
        let say = |text: String| match text.starts_with(&target.to_string()) {
            true => text,
            false => format!("{target}: {text}"),
        };
        match self {
            CliError::Failed(text) => CliError::Failed(say(text)),
            CliError::Unavailable(text) => CliError::Unavailable(say(text)),
            CliError::NotPermitted(text) => CliError::NotPermitted(say(text)),
            here @ (CliError::NotExecutable(_) | CliError::NotFound(_)) => here,
        }
    }

    /// The exit status, as the help lists it (69 and 77 are EX_UNAVAILABLE and EX_NOPERM of sysexits.h; 126
    /// and 127 are what a shell answers).
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Failed(_) => 1,
            CliError::Unavailable(_) => 69,
            CliError::NotPermitted(_) => 77,
            CliError::NotExecutable(_) => 126,
            CliError::NotFound(_) => 127,
        }
    }
}

impl From<GuardError> for CliError {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::ZBus(error) => error.into(),
            GuardError::OutOfReach(text) => CliError::NotPermitted(text),
            other => CliError::Failed(other.text()),
        }
    }
}

impl From<zbus::Error> for CliError {
    fn from(error: zbus::Error) -> Self {
        match &error {
            zbus::Error::MethodError(name, text, _) => {
                let text = text.as_deref().unwrap_or("no further words");
                match name.as_str() {
                    "org.freedesktop.DBus.Error.AccessDenied" => {
                        CliError::NotPermitted(format!("not permitted: {text}"))
                    }
                    "org.freedesktop.DBus.Error.ServiceUnknown"
                    | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
                        CliError::Unavailable(format!("the guard is not running: {text}"))
                    }
                    "org.freedesktop.DBus.Error.NoReply"
                    | "org.freedesktop.DBus.Error.Timeout"
                    | "org.freedesktop.DBus.Error.TimedOut"
                    | "org.freedesktop.DBus.Error.Disconnected" => no_answer(text),
                    "org.freedesktop.DBus.Error.UnknownMethod"
                    | "org.freedesktop.DBus.Error.UnknownInterface"
                    | "org.freedesktop.DBus.Error.UnknownProperty" => CliError::Failed(format!(
                        "the running guard does not know this request ({text}): it may be older than this program; \
                         restart it with: systemctl --user restart workload-guard"
                    )),
                    name => CliError::Failed(format!("{text} ({name})")),
                }
            }
            zbus::Error::InputOutput(io) if io.kind() == std::io::ErrorKind::TimedOut => {
                no_answer("timed out")
            }
            zbus::Error::InputOutput(io) => {
                CliError::Unavailable(format!("the connection to the user bus broke: {io}"))
            }
            _ => CliError::Failed(format!("the bus answered what was not expected: {error}")),
        }
    }
}

fn no_answer(text: &str) -> CliError {
    CliError::Unavailable(format!(
        "the guard did not answer ({text}); whether it carried out the request is not known. \
         Look at: systemctl --user status workload-guard"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guards_errors_have_the_exit_codes_of_the_help() {
        let code = |error: GuardError| CliError::from(error).exit_code();
        assert_eq!(code(GuardError::OutOfReach("root's".into())), 77);
        assert_eq!(code(GuardError::NoSuchProcess("gone".into())), 1);
        assert_eq!(code(GuardError::NeverMoved("kernel thread".into())), 1);
        let io = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert_eq!(
            code(GuardError::ZBus(zbus::Error::InputOutput(io.into()))),
            69
        );
    }

    #[test]
    fn the_guards_words_reach_the_person_without_the_error_name() {
        let error = CliError::from(GuardError::UnknownClass(
            "no class \"frob\": heavy, protected".into(),
        ));
        assert_eq!(error.to_string(), "no class \"frob\": heavy, protected");
    }
}
