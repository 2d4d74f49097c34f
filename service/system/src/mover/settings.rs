//! What must be passed again when a scope is made anew: a recreated scope has nothing else.

use guard_policy::printable::printable;
use serde::{Deserialize, Serialize};
use zvariant::Value;

use crate::units::UnitView;

/// The settings of a unit that differ from what systemd gives a new scope by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSettings {
    /// By their D-Bus names, in the order of the table here.
    pub settings: Vec<Setting>,
    /// When its RuntimeMaxSec ends, in microseconds of `CLOCK_MONOTONIC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ends: Option<u64>,
    /// False when they could not be read: the unit was gone already.
    pub known: bool,
}

/// One property of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// As in `SetUnitProperties`.
    pub name: String,
    /// Its value.
    pub value: SettingValue,
}

impl Setting {
    /// Fit to be passed to systemd, which writes text raw into a unit file: a newline in a source's
    /// description would become settings of the unit that is made in its place, at the next
    /// daemon-reload. Whatever is harmless stays as it is, to the letter.
    fn harmless(mut self) -> Setting {
        if !self.is_harmless() {
            let texts = match &mut self.value {
                SettingValue::Text(text) => std::slice::from_mut(text),
                SettingValue::List(texts) => texts,
                _ => &mut [],
            };
            for text in texts {
                *text = printable(text);
            }
        }
        self
    }

    /// Whether no text of it reads as something else in a unit file.
    pub fn is_harmless(&self) -> bool {
        let texts = match &self.value {
            SettingValue::Text(text) => std::slice::from_ref(text),
            SettingValue::List(texts) => texts,
            _ => &[],
        };
        std::iter::once(&self.name)
            .chain(texts)
            .all(|text| !text.contains(char::is_control) && !text.ends_with('\\'))
    }
}

/// A value in one of the types that the saved properties have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingValue {
    /// D-Bus `s`.
    Text(String),
    /// D-Bus `b`.
    Flag(bool),
    /// D-Bus `t`; `u64::MAX` is infinity, or unset.
    Number(u64),
    /// D-Bus `i`.
    Signed(i32),
    /// D-Bus `u`.
    Unsigned(u32),
    /// D-Bus `as`.
    List(Vec<String>),
    /// D-Bus `ay`: a CPU or memory node mask.
    Bytes(Vec<u8>),
}

impl SettingValue {
    fn read(value: &Value<'_>) -> Option<SettingValue> {
        Some(match value {
            Value::Str(text) => SettingValue::Text(text.to_string()),
            Value::Bool(flag) => SettingValue::Flag(*flag),
            Value::U64(number) => SettingValue::Number(*number),
            Value::I32(number) => SettingValue::Signed(*number),
            Value::U32(number) => SettingValue::Unsigned(*number),
            Value::Array(items) if items.element_signature().to_string() == "y" => {
                SettingValue::Bytes(
                    items
                        .iter()
                        .filter_map(|item| match item {
                            Value::U8(byte) => Some(*byte),
                            _ => None,
                        })
                        .collect(),
                )
            }
            Value::Array(items) => SettingValue::List(
                items
                    .iter()
                    .filter_map(|item| match item {
                        Value::Str(text) => Some(text.to_string()),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => return None,
        })
    }

    /// For a message.
    pub fn to_value(&self) -> Value<'_> {
        match self {
            SettingValue::Text(text) => Value::from(text.as_str()),
            SettingValue::Flag(flag) => Value::from(*flag),
            SettingValue::Number(number) => Value::from(*number),
            SettingValue::Signed(number) => Value::from(*number),
            SettingValue::Unsigned(number) => Value::from(*number),
            SettingValue::List(items) => {
                Value::from(items.iter().map(String::as_str).collect::<Vec<_>>())
            }
            SettingValue::Bytes(bytes) => Value::from(bytes.clone()),
        }
    }

    fn is_quiet(&self, quiet: &Quiet) -> bool {
        match (self, quiet) {
            (SettingValue::Text(text), Quiet::Text(default)) => text.is_empty() || text == default,
            (SettingValue::Flag(flag), Quiet::Flag(default)) => flag == default,
            (SettingValue::Number(number), Quiet::Number(default)) => number == default,
            (SettingValue::Unsigned(number), Quiet::Number(default)) => {
                u64::from(*number) == *default
            }
            (SettingValue::Signed(number), Quiet::Number(default)) => {
                i64::from(*number) == *default as i64
            }
            (SettingValue::List(items), _) => items.is_empty(),
            (SettingValue::Bytes(bytes), _) => bytes.is_empty(),
            _ => false,
        }
    }
}

/// The value that a new scope has anyway, so that it need not be saved.
enum Quiet {
    Text(&'static str),
    Flag(bool),
    Number(u64),
    Empty,
    /// It depends on the manager's own settings (system.conf): always saved.
    Unknown,
}

/// What a setting is for, which decides who else gets it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// What a scope is and how it is killed: only for the recreated source, and only from a scope, since a
    /// service means other things by it (`KillMode=process`).
    Scope,
    /// Shares of resources: the recreated source, and what stands in for it.
    Share,
    /// A bound on resources: the routed scope has it too, or a move would free work from its bounds.
    Bound,
}

const UNSET: u64 = u64::MAX;

/// Types are those of the D-Bus properties, org.freedesktop.systemd1(5).
///
/// Not here: Slice, Delegate and CollectMode, which every scope of ours sets; ties, which
/// [`super::ties`] decides; RuntimeMaxUSec, which counts on; what is root's alone (IP and device
/// rules); Wants= and Requires=, whose start would start others again.
const TABLE: &[(&str, Quiet, Use)] = &[
    ("Description", Quiet::Empty, Use::Scope),
    ("Documentation", Quiet::Empty, Use::Scope),
    ("KillMode", Quiet::Text("control-group"), Use::Scope),
    ("KillSignal", Quiet::Number(15), Use::Scope),
    ("FinalKillSignal", Quiet::Number(9), Use::Scope),
    ("SendSIGHUP", Quiet::Flag(false), Use::Scope),
    ("SendSIGKILL", Quiet::Flag(true), Use::Scope),
    ("TimeoutStopUSec", Quiet::Unknown, Use::Scope),
    ("OOMPolicy", Quiet::Unknown, Use::Scope),
    ("CPUWeight", Quiet::Number(UNSET), Use::Share),
    ("StartupCPUWeight", Quiet::Number(UNSET), Use::Share),
    ("CPUQuotaPerSecUSec", Quiet::Number(UNSET), Use::Bound),
    ("CPUQuotaPeriodUSec", Quiet::Number(UNSET), Use::Bound),
    ("AllowedCPUs", Quiet::Empty, Use::Bound),
    ("AllowedMemoryNodes", Quiet::Empty, Use::Bound),
    ("IOWeight", Quiet::Number(UNSET), Use::Share),
    ("StartupIOWeight", Quiet::Number(UNSET), Use::Share),
    ("MemoryMin", Quiet::Number(0), Use::Share),
    ("MemoryLow", Quiet::Number(0), Use::Share),
    ("MemoryHigh", Quiet::Number(UNSET), Use::Bound),
    ("MemoryMax", Quiet::Number(UNSET), Use::Bound),
    ("MemorySwapMax", Quiet::Number(UNSET), Use::Bound),
    ("MemoryZSwapMax", Quiet::Number(UNSET), Use::Bound),
    ("TasksMax", Quiet::Number(UNSET), Use::Bound),
    ("ManagedOOMSwap", Quiet::Text("auto"), Use::Share),
    ("ManagedOOMMemoryPressure", Quiet::Text("auto"), Use::Share),
    (
        "ManagedOOMMemoryPressureLimit",
        Quiet::Number(0),
        Use::Share,
    ),
    ("ManagedOOMPreference", Quiet::Text("none"), Use::Share),
];

impl SavedSettings {
    /// What `unit` has.
    pub fn of(unit: &UnitView) -> SavedSettings {
        let is_scope = unit.name().ends_with(".scope");
        let settings = TABLE
            .iter()
            .filter(|(_, _, used)| is_scope || *used != Use::Scope)
            .filter_map(|(name, quiet, _)| {
                let value = SettingValue::read(unit.value(name)?)?;
                (!value.is_quiet(quiet)).then(|| Setting {
                    name: (*name).to_owned(),
                    value,
                })
            })
            .filter(|setting| !is_own_name(unit, setting))
            .map(Setting::harmless)
            .collect();
        SavedSettings {
            settings,
            runtime_ends: runtime_ends(unit),
            known: unit.loaded(),
        }
    }

    /// The bounds alone.
    pub fn bounds(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|setting| {
            TABLE
                .iter()
                .any(|(name, _, used)| *name == setting.name && *used == Use::Bound)
        })
    }

    /// What is left of RuntimeMaxSec at `now` (microseconds of `CLOCK_MONOTONIC`), at least a second so
    /// that a move at the very end is not a kill without warning.
    pub fn runtime_left(&self, now: u64) -> Option<u64> {
        self.runtime_ends
            .map(|ends| ends.saturating_sub(now).max(1_000_000))
    }
}

/// A unit without Description= shows its name as one; passing that would be a change.
fn is_own_name(unit: &UnitView, setting: &Setting) -> bool {
    setting.name == "Description" && setting.value == SettingValue::Text(unit.name().to_owned())
}

fn runtime_ends(unit: &UnitView) -> Option<u64> {
    // A service stops its main process itself when the time is over, and the tie passes that on.
    if !unit.name().ends_with(".scope") {
        return None;
    }
    let limit = unit
        .number("RuntimeMaxUSec")
        .filter(|limit| *limit != UNSET)?;
    let began = unit
        .number("ActiveEnterTimestampMonotonic")
        .filter(|at| *at != 0)?;
    Some(began.saturating_add(limit))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use zvariant::OwnedValue;

    use super::*;

    fn unit(name: &str, properties: &[(&str, Value<'static>)]) -> UnitView {
        let owned: HashMap<String, OwnedValue> = properties
            .iter()
            .map(|(name, value)| {
                let value = value.try_to_owned().expect("no file descriptor in it");
                ((*name).to_owned(), value)
            })
            .collect();
        UnitView::new(name, owned)
    }

    #[test]
    fn what_is_not_set_is_not_passed() {
        let saved = SavedSettings::of(&unit(
            "a.scope",
            &[
                ("Description", Value::from("a.scope")),
                ("CPUWeight", Value::from(UNSET)),
                ("MemoryMax", Value::from(UNSET)),
                ("MemoryLow", Value::from(0u64)),
                ("KillMode", Value::from("control-group")),
                ("KillSignal", Value::from(15i32)),
                ("SendSIGKILL", Value::from(true)),
                ("AllowedCPUs", Value::from(Vec::<u8>::new())),
                ("RuntimeMaxUSec", Value::from(UNSET)),
                ("ActiveEnterTimestampMonotonic", Value::from(7u64)),
            ],
        ));
        assert_eq!(saved.settings, []);
        assert_eq!(saved.runtime_ends, None);
    }

    #[test]
    fn what_is_set_comes_back_in_its_own_type() {
        let unit = unit(
            "a.scope",
            &[
                ("Description", Value::from("An editor")),
                ("MemoryMax", Value::from(1u64 << 30)),
                ("KillMode", Value::from("mixed")),
                ("KillSignal", Value::from(2i32)),
                ("AllowedCPUs", Value::from(vec![3u8])),
                ("TimeoutStopUSec", Value::from(5_000_000u64)),
            ],
        );
        let saved = SavedSettings::of(&unit);
        for setting in &saved.settings {
            let original = unit.value(&setting.name).expect("it was given");
            assert_eq!(&setting.value.to_value(), original, "{}", setting.name);
        }
        assert_eq!(saved.settings.len(), 6);
        let bounds: Vec<&str> = saved
            .bounds()
            .map(|setting| setting.name.as_str())
            .collect();
        assert_eq!(bounds, ["AllowedCPUs", "MemoryMax"]);
    }

    #[test]
    fn a_newline_in_the_description_of_a_source_was_passed_on_raw() {
        let saved_as = |text: &'static str| {
            let saved = SavedSettings::of(&unit("a.scope", &[("Description", Value::from(text))]));
            match &saved.settings[0].value {
                SettingValue::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            saved_as("x\n[Scope]\nKillMode=none"),
            "x [Scope] KillMode=none"
        );
        assert_eq!(saved_as("x\\"), "x");
        assert_eq!(saved_as("50%  & „more“"), "50%  & „more“");
    }

    #[test]
    fn how_a_service_is_killed_is_not_how_a_scope_is() {
        let saved = SavedSettings::of(&unit(
            "a.service",
            &[
                ("KillMode", Value::from("process")),
                ("MemoryMax", Value::from(1u64 << 30)),
            ],
        ));
        let names: Vec<&str> = saved
            .settings
            .iter()
            .map(|setting| setting.name.as_str())
            .collect();
        assert_eq!(names, ["MemoryMax"]);
    }

    #[test]
    fn a_runtime_limit_counts_on() {
        let saved = SavedSettings::of(&unit(
            "a.scope",
            &[
                ("RuntimeMaxUSec", Value::from(60_000_000u64)),
                ("ActiveEnterTimestampMonotonic", Value::from(10_000_000u64)),
            ],
        ));
        assert_eq!(saved.runtime_left(30_000_000), Some(40_000_000));
        assert_eq!(saved.runtime_left(80_000_000), Some(1_000_000));
    }
}
