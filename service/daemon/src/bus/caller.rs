//! Who called, by the bus's own word.

use nix::unistd::Uid;
use workload_guard_dbus::GuardError;
use zbus::fdo::DBusProxy;
use zbus::names::OwnedUniqueName;

/// Who called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its unique name; none on a connection without a bus.
    pub name: Option<String>,
    /// Its PID, as [`pid`] knows it.
    pub pid: Option<u32>,
}

/// A caller by name and PID.
pub async fn identify(
    connection: &zbus::Connection,
    name: Option<OwnedUniqueName>,
) -> Result<Caller, GuardError> {
    Ok(Caller {
        name: name.as_ref().map(|name| name.as_str().to_owned()),
        pid: pid(connection, name).await?,
    })
}

/// The PID of a caller, as the bus learned it from the kernel when the caller connected
/// (`GetConnectionCredentials`); none on a connection without a bus.
///
/// Only callers of our own user are served: the user bus admits no others, root apart.
pub async fn pid(
    connection: &zbus::Connection,
    caller: Option<OwnedUniqueName>,
) -> Result<Option<u32>, GuardError> {
    let Some(caller) = caller else {
        return Ok(None);
    };
    let refused =
        |text: String| GuardError::OutOfReach(format!("the bus does not tell who called: {text}"));
    let bus = DBusProxy::new(connection)
        .await
        .map_err(|error| refused(error.to_string()))?;
    let credentials = bus
        .get_connection_credentials(caller.into_inner().into())
        .await
        .map_err(|error| refused(error.to_string()))?;
    let own = Uid::effective();
    match credentials.unix_user_id() {
        Some(uid) if uid == own.as_raw() || uid == 0 => Ok(credentials.process_id()),
        Some(uid) => Err(GuardError::OutOfReach(format!(
            "the guard of user {own} serves no calls of user {uid}"
        ))),
        None => Err(refused("no user id".into())),
    }
}
