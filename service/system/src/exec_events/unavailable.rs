//! Why there are no exec events here.

use std::io;
use std::os::linux::fs::MetadataExt;

use rustix::io::Errno;

/// Numbers of the initial namespaces (`PROC_USER_INIT_INO` and `PROC_PID_INIT_INO` of the kernel's
/// `include/linux/proc_ns.h`).
const INITIAL: [(&str, &str, u64); 2] = [
    ("user", "/proc/self/ns/user", 0xEFFF_FFFD),
    ("PID", "/proc/self/ns/pid", 0xEFFF_FFFC),
];

/// No exec events, and why, in words for the status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unavailable {
    why: String,
}

impl Unavailable {
    fn because(why: impl Into<String>) -> Unavailable {
        Unavailable { why: why.into() }
    }

    pub(super) fn socket(error: Errno) -> Unavailable {
        Unavailable::because(match error {
            Errno::PROTONOSUPPORT => {
                "this kernel has no process connector (CONFIG_PROC_EVENTS)".to_owned()
            }
            Errno::AFNOSUPPORT | Errno::PERM | Errno::ACCESS => {
                "this service may not use netlink (RestrictAddressFamilies= of its unit, or a container's filter)"
                    .to_owned()
            }
            error => format!("no netlink socket: {error}"),
        })
    }

    pub(super) fn bind(error: Errno) -> Unavailable {
        Unavailable::because(match error {
            Errno::PERM | Errno::ACCESS => {
                "kernels before Linux 6.6 give exec events to root alone".to_owned()
            }
            Errno::NOENT | Errno::PROTONOSUPPORT => {
                "this kernel has no process connector (CONFIG_PROC_EVENTS)".to_owned()
            }
            error => format!("the process connector cannot be joined: {error}"),
        })
    }

    pub(super) fn send(error: Errno) -> Unavailable {
        Unavailable::because(match error {
            Errno::CONNREFUSED => {
                "the kernel gives exec events in the initial network namespace alone".to_owned()
            }
            Errno::PERM | Errno::ACCESS => {
                "kernels before Linux 6.6 give exec events to root alone".to_owned()
            }
            error => format!("the kernel did not take the subscription: {error}"),
        })
    }

    pub(super) fn refused(error: i32) -> Unavailable {
        let error = io::Error::from_raw_os_error(error);
        Unavailable::because(format!("the kernel refused the subscription: {error}"))
    }

    pub(super) fn no_answer() -> Unavailable {
        let own = |(_, path, initial): &&(&str, &str, u64)| {
            std::fs::metadata(path).is_ok_and(|found| found.st_ino() != *initial)
        };
        let names: Vec<&str> = INITIAL.iter().filter(own).map(|(name, ..)| *name).collect();
        Unavailable::because(if names.is_empty() {
            "the kernel did not answer the subscription".to_owned()
        } else {
            format!(
                "the guard runs in a {} namespace of its own (a container, or PrivateUsers= and the like), where the kernel gives no exec events",
                names.join(" and ")
            )
        })
    }

    pub(super) fn other(error: Errno) -> Unavailable {
        Unavailable::because(format!("the netlink socket cannot be set up: {error}"))
    }

    pub(super) fn io(error: &io::Error) -> Unavailable {
        Unavailable::because(format!("the netlink socket cannot be used: {error}"))
    }
}
