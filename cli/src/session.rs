//! Why there is no user bus, in words. The facts are gathered in one place and judged by a pure function.

use std::path::{Path, PathBuf};

use nix::unistd::Uid;

/// What tells one cause from another.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Effective user.
    pub uid: u32,
    /// Value of `DBUS_SESSION_BUS_ADDRESS`.
    pub address: Option<String>,
    /// Value of `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// Whether `/run/user/UID` is there: the user has a session, or lingers.
    pub user_session: bool,
    /// Whether systemd is the machine's init (sd_booted(3)).
    pub systemd: bool,
    /// Whether cgroup v2 is mounted at `/sys/fs/cgroup`.
    pub cgroup2: bool,
}

impl Facts {
    /// Looks.
    pub fn gather() -> Facts {
        let uid = Uid::effective().as_raw();
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Facts {
            uid,
            address: variable("DBUS_SESSION_BUS_ADDRESS"),
            runtime_dir: variable("XDG_RUNTIME_DIR").map(PathBuf::from),
            user_session: Path::new(&format!("/run/user/{uid}")).is_dir(),
            systemd: Path::new("/run/systemd/system").is_dir(),
            cgroup2: Path::new("/sys/fs/cgroup/cgroup.controllers").is_file(),
        }
    }
}

impl Facts {
    /// That budgets cannot hold, and what to do about it.
    pub fn no_cgroup2(&self) -> Option<&'static str> {
        (!self.cgroup2).then_some(
            "/sys/fs/cgroup is not a cgroup v2 hierarchy, which budgets need: boot with \
             systemd.unified_cgroup_hierarchy=1",
        )
    }
}

/// What is missing, and what to do about it. `error` is what the attempt to connect said.
pub fn explain(facts: &Facts, error: &str) -> String {
    if !facts.systemd {
        return "this machine was not booted with systemd (no /run/systemd/system); the guard asks systemd for every \
                move and cannot work without it"
            .into();
    }
    if let Some(text) = facts.no_cgroup2() {
        return text.into();
    }
    let tried = match (&facts.address, &facts.runtime_dir) {
        (Some(address), _) => format!("DBUS_SESSION_BUS_ADDRESS={address}"),
        (None, Some(dir)) => format!("{}/bus", dir.display()),
        (None, None) => format!("/run/user/{}/bus", facts.uid),
    };
    let mut text = format!("no user bus at {tried} ({error})");
    if facts.uid == 0 {
        text.push_str(
            ": this is root, whose user manager seldom runs. Run it as the user whose work is meant, for example: \
             systemctl --user --machine=USER@ status workload-guard",
        );
    } else if !facts.user_session {
        text.push_str(
            ": this user has no session here, so no user manager runs. Log in (sudo and su do not), or let the manager \
             run without one: loginctl enable-linger",
        );
    } else if facts.address.is_none() && facts.runtime_dir.is_none() {
        text.push_str(&format!(
            ": XDG_RUNTIME_DIR is not set, as after su; set it: export XDG_RUNTIME_DIR=/run/user/{}",
            facts.uid
        ));
    } else {
        text.push_str(
            ": start it with: systemctl --user start dbus.socket (on Debian and Ubuntu it is in the package dbus-user-session)",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desktop() -> Facts {
        Facts {
            uid: 1000,
            address: None,
            runtime_dir: Some("/run/user/1000".into()),
            user_session: true,
            systemd: true,
            cgroup2: true,
        }
    }

    #[test]
    fn each_cause_has_its_own_way_out() {
        let cases = [
            (
                Facts {
                    systemd: false,
                    ..desktop()
                },
                "not booted with systemd",
            ),
            (
                Facts {
                    cgroup2: false,
                    ..desktop()
                },
                "systemd.unified_cgroup_hierarchy=1",
            ),
            (
                Facts {
                    uid: 0,
                    ..desktop()
                },
                "--machine=USER@",
            ),
            (
                Facts {
                    user_session: false,
                    runtime_dir: None,
                    ..desktop()
                },
                "loginctl enable-linger",
            ),
            (
                Facts {
                    runtime_dir: None,
                    ..desktop()
                },
                "export XDG_RUNTIME_DIR=/run/user/1000",
            ),
            (desktop(), "dbus-user-session"),
        ];
        for (facts, expected) in cases {
            let text = explain(&facts, "No such file or directory");
            assert!(text.contains(expected), "{facts:?}: {text}");
        }
    }

    #[test]
    fn the_address_that_was_tried_is_named() {
        let facts = Facts {
            address: Some("unix:path=/nowhere".into()),
            ..desktop()
        };
        assert!(
            explain(&facts, "gone").contains("DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere (gone)")
        );
    }
}
