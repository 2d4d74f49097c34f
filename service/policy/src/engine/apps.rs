//! What belongs to a desktop app itself, and so is not routed for the CPU that it uses.
//!
//! A desktop gives each app a unit of its own, whose name begins with `app-` (systemd's
//! DESKTOP_ENVIRONMENTS.md), and portals and monitors know the app by it. A browser's renderer or an editor's
//! language server that burns for eight seconds is the app at work for the person in front of it. What
//! somebody started in a terminal is not the terminal's: it, or what started it, has a controlling terminal,
//! while the app and its helpers have none.

use super::Engine;
use super::seen::Seen;

/// What the names of app units begin with.
const PREFIX: &str = "app-";

/// Whether a control group is of an app's unit: a scope or service named so, or anything in a slice named
/// so, such as the `vte-spawn-….scope` of each tab in `app-org.gnome.Terminal.slice`.
pub(super) fn is_app(cgroup: &str) -> bool {
    cgroup.split('/').any(|part| part.starts_with(PREFIX))
}

impl Engine {
    /// Whether a process is a part of the app whose unit it is in, and not work that was started in it.
    pub(super) fn is_apps_own(&self, seen: &Seen) -> bool {
        seen.of_app
            && !seen.has_terminal
            && !self
                .processes
                .carriers(seen)
                .any(|other| other.has_terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_known_by_its_unit() {
        let app = "/user.slice/user-1000.slice/user@1000.service/app.slice";
        for own in [
            "app-gnome-firefox-4242.scope",
            "app-org.kde.konsole@0123456789abcdef.service",
            "app-org.kde.konsole-77.scope/tab(80).scope",
            "app-org.gnome.Terminal.slice/vte-spawn-9d5a.scope",
        ] {
            assert!(is_app(&format!("{app}/{own}")), "{own}");
        }
        for other in [
            "run-u12.scope",
            "syncthing.service",
            "",
            "vte-spawn-9d5a.scope",
        ] {
            assert!(!is_app(&format!("{app}/{other}")), "{other}");
        }
    }
}
