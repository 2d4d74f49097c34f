//! The one call that we make to polkit (org.freedesktop.PolicyKit1.Authority, polkit(8)).

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

use std::collections::HashMap;

use zvariant::Value;

/// Kind of the subject that is a connection to the system bus. polkit itself then asks the bus who that is: no PID
/// of ours can go stale meanwhile.
pub const SYSTEM_BUS_NAME: &str = "system-bus-name";

/// Flag of `CheckAuthorization`: a person may be asked.
pub const ALLOW_USER_INTERACTION: u32 = 1;

/// A kind with its details: for [`SYSTEM_BUS_NAME`] the key `name`.
pub type Subject<'a> = (&'a str, HashMap<&'a str, Value<'a>>);

/// polkit's answer: allowed, allowed after a person is asked, details.
pub type Answer = (bool, bool, HashMap<String, String>);

/// polkit.
#[zbus::proxy(
    interface = "org.freedesktop.PolicyKit1.Authority",
    default_service = "org.freedesktop.PolicyKit1",
    default_path = "/org/freedesktop/PolicyKit1/Authority",
    gen_blocking = false
)]
pub trait Authority {
    /// May the subject do what `action_id` names? With [`ALLOW_USER_INTERACTION`] it takes as long as a person does.
    fn check_authorization(
        &self,
        subject: &Subject<'_>,
        action_id: &str,
        details: &HashMap<&str, &str>,
        flags: u32,
        cancellation_id: &str,
    ) -> zbus::Result<Answer>;
}
