//! Units of systemd and their properties.

use std::collections::HashMap;

use workload_guard_dbus::systemd1::{SYSTEMD_NAME, UnitPropertiesProxy};
use zbus::Connection;
use zbus::proxy::CacheProperties;
use zvariant::{ObjectPath, OwnedObjectPath, OwnedValue, Value};

/// The D-Bus name of an error that the other side answered; none for errors of the connection.
pub fn error_name(error: &zbus::Error) -> Option<&str> {
    match error {
        zbus::Error::MethodError(name, _, _) => Some(name.as_str()),
        _ => None,
    }
}

/// The object path of a unit, whether loaded or not.
///
/// As systemd's bus_label_escape(): all but ASCII letters and digits becomes `_` and two hex digits, and so
/// does a leading digit. Knowing it saves the GetUnit round trip.
pub fn unit_path(unit: &str) -> OwnedObjectPath {
    let mut path = String::from("/org/freedesktop/systemd1/unit/");
    for (at, byte) in unit.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    ObjectPath::try_from(path)
        .expect("only alphanumerics and underscores were put in")
        .into()
}

/// Reads every property of a unit, of all its interfaces, in one round trip.
///
/// The empty interface name means all of them to sd-bus; `systemctl show` does the same. A unit that is
/// not loaded is no error: its `LoadState` is `not-found`.
pub async fn view(conn: &Connection, unit: &str) -> zbus::Result<UnitView> {
    let proxy = UnitPropertiesProxy::builder(conn)
        .destination(SYSTEMD_NAME)?
        .path(unit_path(unit))?
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    Ok(UnitView::new(unit, proxy.get_all("").await?))
}

/// A unit's properties at one moment.
#[derive(Debug)]
pub struct UnitView {
    name: String,
    properties: HashMap<String, OwnedValue>,
}

impl UnitView {
    /// From the answer of `GetAll`.
    pub fn new(name: &str, properties: HashMap<String, OwnedValue>) -> UnitView {
        UnitView {
            name: name.to_owned(),
            properties,
        }
    }

    /// The name that was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A property, whatever its type.
    pub fn value(&self, property: &str) -> Option<&Value<'static>> {
        self.properties.get(property).map(|value| &**value)
    }

    /// A string property; empty when it is missing.
    pub fn text(&self, property: &str) -> &str {
        match self.value(property) {
            Some(Value::Str(text)) => text.as_str(),
            _ => "",
        }
    }

    /// A boolean property; false when it is missing.
    pub fn flag(&self, property: &str) -> bool {
        matches!(self.value(property), Some(Value::Bool(true)))
    }

    /// An unsigned property.
    pub fn number(&self, property: &str) -> Option<u64> {
        match self.value(property)? {
            Value::U64(number) => Some(*number),
            Value::U32(number) => Some(u64::from(*number)),
            _ => None,
        }
    }

    /// A list of strings; empty when it is missing.
    pub fn list(&self, property: &str) -> Vec<String> {
        match self.value(property) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|item| match item {
                    Value::Str(text) => Some(text.to_string()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it is loaded at all.
    pub fn loaded(&self) -> bool {
        self.text("LoadState") != "not-found"
    }

    /// Whether it runs: a process can be attached to it.
    pub fn alive(&self) -> bool {
        matches!(
            self.text("ActiveState"),
            "active" | "activating" | "reloading" | "refreshing"
        )
    }

    /// Whether processes can be attached to it (AttachProcessesToUnit).
    pub fn delegated(&self) -> bool {
        self.flag("Delegate")
    }

    /// PIDs by which systemd tracks a service: main and control.
    pub fn tracked(&self, pid: u32) -> bool {
        [self.number("MainPID"), self.number("ControlPID")].contains(&Some(u64::from(pid)))
    }

    /// Whether status and watchdog messages of processes other than the main one count.
    pub fn hears_children(&self) -> bool {
        matches!(self.text("NotifyAccess"), "all" | "exec")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_path_is_what_systemd_makes_of_the_name() {
        assert_eq!(
            unit_path("app-a\\x2db.scope").as_str(),
            "/org/freedesktop/systemd1/unit/app_2da_5cx2db_2escope"
        );
        assert_eq!(
            unit_path("1a1.scope").as_str(),
            "/org/freedesktop/systemd1/unit/_31a1_2escope"
        );
    }

    #[test]
    fn a_missing_property_is_the_quiet_value() {
        let view = UnitView::new("x.scope", HashMap::new());
        assert_eq!(view.text("Slice"), "");
        assert!(!view.delegated());
        assert!(!view.tracked(1));
        assert_eq!(view.number("MainPID"), None);
        assert!(view.list("PartOf").is_empty());
    }

    #[test]
    fn pid_zero_is_no_tracked_process() {
        let mut properties = HashMap::new();
        properties.insert("MainPID".to_owned(), OwnedValue::from(0u32));
        // A caller never asks for 0, but a service without a main process must not match by accident.
        assert!(!UnitView::new("x.service", properties).tracked(17));
    }
}
