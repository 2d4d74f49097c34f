//! Budgets that the settings give to slices of the user's own: set, kept, and put back.
//!
//! What is set lasts until the user logs out, longer than the guard: so it is remembered with the value
//! that was there before, first in memory and on disk, then in systemd. A guard that was killed finds it
//! in its state.

use std::collections::BTreeMap;

use guard_policy::budget::{Amount, Property, UnitSetting};
use guard_policy::health::Problem;
use serde::{Deserialize, Serialize};
use workload_guard_dbus::systemd1::ManagerProxy;
use zbus::Connection;
use zvariant::Value;

use super::runtime::set_properties;
use super::{manager, words};
use crate::units::{self, UnitView, error_name};

/// A property that the guard set, or is about to set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The slice.
    pub unit: String,
    /// Which.
    pub property: Property,
    /// systemd's number for it before.
    pub before: u64,
    /// What is asked for.
    pub asked: Amount,
    /// systemd's number for that; `None` for a percentage until systemd has told what it comes to.
    pub now: Option<u64>,
}

/// Everything that the guard set.
#[derive(Clone, Debug, Default)]
pub struct GivenBudgets(BTreeMap<(String, Property), Given>);

impl GivenBudgets {
    /// What an earlier guard left.
    pub fn new(saved: impl IntoIterator<Item = Given>) -> GivenBudgets {
        let by_unit = |given: Given| ((given.unit.clone(), given.property), given);
        GivenBudgets(saved.into_iter().map(by_unit).collect())
    }

    /// To be saved.
    pub fn iter(&self) -> impl Iterator<Item = &Given> {
        self.0.values()
    }

    /// Remembers what is asked for, and what is there now where that is new: to be saved before
    /// [`Self::apply`].
    pub async fn prepare(
        &mut self,
        connection: &Connection,
        wanted: &[UnitSetting],
    ) -> zbus::Result<()> {
        for setting in wanted {
            let key = (setting.unit.clone(), setting.property);
            let known = self.0.get(&key);
            if known.is_some_and(|given| given.asked == setting.value) {
                continue;
            }
            let before = match known {
                Some(given) => given.before,
                None => number(
                    &units::view(connection, &setting.unit).await?,
                    setting.property,
                ),
            };
            let given = Given {
                unit: setting.unit.clone(),
                property: setting.property,
                before,
                asked: setting.value,
                now: match setting.value {
                    Amount::Absolute(amount) => Some(amount),
                    Amount::Infinity => Some(u64::MAX),
                    Amount::Permyriad(_) => None,
                },
            };
            self.0.insert(key, given);
        }
        Ok(())
    }

    /// Puts back what is no longer wanted, and sets what is and does not hold. What systemd refuses is
    /// answered, and tried again next time. The quota of the unit that is `steered` is left as it is: somebody
    /// else moves it, and will put back what was set here.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn apply(
        &mut self,
        connection: &Connection,
        wanted: &[UnitSetting],
        steered: Option<&str>,
    ) -> zbus::Result<Vec<Problem>> {
        if self.0.is_empty() && wanted.is_empty() {
            return Ok(Vec::new());
        }
        let manager = manager(connection).await?;
        let mut problems = self.put_back(connection, &manager, wanted).await?;
        for setting in wanted {
            if setting.property == Property::Quota && steered == Some(setting.unit.as_str()) {
                continue;
            }
            let key = (setting.unit.clone(), setting.property);
            let Some(given) = self.0.get_mut(&key) else {
                continue;
            };
            let view = units::view(connection, &setting.unit).await?;
            if Some(number(&view, setting.property)) == given.now {
                continue;
            }
            let (name, value) = written(setting.property, setting.value);
            let property = [(name.as_str(), value)];
            match set_properties(connection, &manager, &setting.unit, &property).await {
                Ok(view) => {
                    let now = number(&view, setting.property);
                    given.now = Some(now);
                    log::info!(
                        "{} of {} is {}, as the settings of class {} say",
                        setting.property.name(),
                        setting.unit,
                        shown(now),
                        setting.class
                    );
                }
                Err(error) => problems.push(refused(&setting.unit, setting.property, error)?),
            }
        }
        Ok(problems)
    }

    async fn put_back(
        &mut self,
        connection: &Connection,
        manager: &ManagerProxy<'_>,
        wanted: &[UnitSetting],
    ) -> zbus::Result<Vec<Problem>> {
        let is_wanted = |given: &Given| {
            wanted
                .iter()
                .any(|setting| setting.unit == given.unit && setting.property == given.property)
        };
        let old: Vec<Given> = self
            .0
            .values()
            .filter(|given| !is_wanted(given))
            .cloned()
            .collect();
        let mut problems = Vec::new();
        for given in old {
            let view = units::view(connection, &given.unit).await?;
            let now = number(&view, given.property);
            // Somebody else's value since then is theirs.
            let is_ours = given.now.is_none_or(|ours| ours == now);
            if is_ours && now != given.before {
                let property = [(given.property.name(), Value::from(given.before))];
                if let Err(error) =
                    set_properties(connection, manager, &given.unit, &property).await
                {
                    problems.push(refused(&given.unit, given.property, error)?);
                    continue;
                }
                log::info!(
                    "{} of {} is {} again",
                    given.property.name(),
                    given.unit,
                    shown(given.before)
                );
            }
            self.0.remove(&(given.unit, given.property));
        }
        Ok(problems)
    }
}

/// systemd's number; the largest is how it spells "not set".
fn number(view: &UnitView, property: Property) -> u64 {
    view.number(property.name()).unwrap_or(u64::MAX)
}

fn shown(number: u64) -> String {
    match number {
        u64::MAX => "not set".to_owned(),
        number => number.to_string(),
    }
}

/// Name and value as systemd takes them. A percentage goes as a fraction of the largest `u`
/// (`MemoryHighScale`, `TasksMaxScale`: bus_cgroup_set_property() in systemd's dbus-cgroup.c).
fn written(property: Property, value: Amount) -> (String, Value<'static>) {
    let name = property.name().to_owned();
    match value {
        Amount::Absolute(amount) => (name, Value::from(amount)),
        Amount::Infinity => (name, Value::from(u64::MAX)),
        Amount::Permyriad(permyriad) => {
            let scale = u64::from(permyriad) * u64::from(u32::MAX) / 10_000;
            // At most all of it, so nothing is lost.
            (format!("{name}Scale"), Value::from(scale as u32))
        }
    }
}

/// What systemd refused, in words; an error of the connection is one.
fn refused(unit: &str, property: Property, error: zbus::Error) -> zbus::Result<Problem> {
    match error_name(&error) {
        Some(_) => Ok(Problem::BudgetRefused {
            unit: unit.to_owned(),
            property: property.name(),
            why: words(&error),
        }),
        None => Err(error),
    }
}
