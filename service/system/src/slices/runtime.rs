//! Properties that are set on slices at run time. Everything that does so comes through here.

use workload_guard_dbus::systemd1::ManagerProxy;
use zbus::Connection;
use zvariant::Value;

use crate::units::{self, UnitView};

/// Sets properties of a slice until the user logs out, and answers what systemd says of it after that.
///
/// systemd writes the kernel's files when it is done with its calls: the round trip of the answer makes
/// sure that it was. Whether the kernel has the values is for the caller to read.
///
/// # Errors
///
/// systemd's own: an unknown property or an impossible value changes nothing at all.
pub async fn set_properties(
    connection: &Connection,
    manager: &ManagerProxy<'_>,
    slice: &str,
    properties: &[(&str, Value<'_>)],
) -> zbus::Result<UnitView> {
    manager.set_unit_properties(slice, true, properties).await?;
    units::view(connection, slice).await
}
