//! Budgets of the user's own classes: which property of which unit gets what value.
//!
//! The slices that the guard ships have unit files, and those are the one place of their budgets. A
//! class of the user's own needs no unit file: its settings say the budget.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::class::{Class, slice_chain};

/// What the settings say of a class's budget. What is `None` is not touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// `quota`: microseconds of CPU per second.
    pub quota_usec_per_sec: Option<u64>,
    /// `weight`, 1 to 10000.
    pub weight: Option<u64>,
    /// `memory_high`.
    pub memory_high: Option<Amount>,
    /// `io_weight`, 1 to 10000.
    pub io_weight: Option<u64>,
    /// `tasks_max`.
    pub tasks_max: Option<Amount>,
}

impl Budget {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Budget::default()
    }
}

/// An amount as systemd writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes, tasks, a weight, or microseconds per second.
    Absolute(u64),
    /// Hundredths of a percent of what the machine has.
    Permyriad(u32),
    /// No limit.
    Infinity,
}

impl Amount {
    /// A text of systemd.resource-control(5): a whole number, with `suffixes` also one that ends in K, M, G
    /// or T (powers of 1024), a percentage above 0, or `infinity`.
    pub fn parse(text: &str, suffixes: bool) -> Option<Amount> {
        let text = text.trim();
        if text == "infinity" {
            return Some(Amount::Infinity);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let permyriad = percent.trim().parse::<f64>().ok()? * 100.0;
            // Above 0 and whole after rounding, so nothing is lost.
            return (1.0..=10_000.0)
                .contains(&permyriad)
                .then(|| Amount::Permyriad(permyriad.round() as u32));
        }
        let (digits, shift) = match text.chars().last().map(|c| (c, "KMGT".find(c))) {
            Some((_, Some(at))) if suffixes => (&text[..text.len() - 1], 10 * (at as u32 + 1)),
            _ => (text, 0),
        };
        let digits = digits.trim_end();
        let number: u64 = digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())??;
        let amount = number.checked_mul(1u64.checked_shl(shift)?)?;
        // The largest is how systemd spells `infinity` on the bus.
        (amount > 0 && amount < u64::MAX).then_some(Amount::Absolute(amount))
    }
}

/// As systemd writes it.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Absolute(amount) => {
                let unit = [(40, "T"), (30, "G"), (20, "M"), (10, "K")]
                    .into_iter()
                    .find(|(shift, _)| *amount >> shift << shift == *amount && *amount > 0);
                match unit {
                    Some((shift, suffix)) => write!(f, "{}{suffix}", amount >> shift),
                    None => write!(f, "{amount}"),
                }
            }
            Amount::Permyriad(permyriad) => write!(f, "{}%", f64::from(*permyriad) / 100.0),
            Amount::Infinity => f.write_str("infinity"),
        }
    }
}

/// A property of a slice that a budget can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// `CPUQuota=`
    Quota,
    /// `CPUWeight=`
    Weight,
    /// `MemoryHigh=`
    MemoryHigh,
    /// `IOWeight=`
    IoWeight,
    /// `TasksMax=`
    TasksMax,
}

impl Property {
    /// Every one.
    pub const ALL: &[Property] = &[
        Property::Quota,
        Property::Weight,
        Property::MemoryHigh,
        Property::IoWeight,
        Property::TasksMax,
    ];

    /// Its name on the bus (org.freedesktop.systemd1(5)); all of them are of type `t`, in which the
    /// largest number means that nothing is set.
    pub fn name(self) -> &'static str {
        match self {
            Property::Quota => "CPUQuotaPerSecUSec",
            Property::Weight => "CPUWeight",
            Property::MemoryHigh => "MemoryHigh",
            Property::IoWeight => "IOWeight",
            Property::TasksMax => "TasksMax",
        }
    }

    /// Its key in the settings.
    pub fn key(self) -> &'static str {
        match self {
            Property::Quota => "quota",
            Property::Weight => "weight",
            Property::MemoryHigh => "memory_high",
            Property::IoWeight => "io_weight",
            Property::TasksMax => "tasks_max",
        }
    }

    /// The controller without which the kernel does not know of it.
    pub fn controller(self) -> &'static str {
        match self {
            Property::Quota | Property::Weight => "cpu",
            Property::MemoryHigh => "memory",
            Property::IoWeight => "io",
            Property::TasksMax => "pids",
        }
    }
}

/// One property of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSetting {
    /// The slice.
    pub unit: String,
    /// What is set.
    pub property: Property,
    /// To what.
    pub value: Amount,
    /// The class whose settings say so.
    pub class: String,
}

/// Everything that the settings of `classes` set, none twice.
///
/// Weights count between siblings only, and a dash nests: the weight of `batch-inference.slice` has to be
/// on `batch.slice`, which is what stands beside the other classes; see [`weight_slice`].
pub fn unit_settings(classes: &[Class], parents: &[String]) -> Vec<UnitSetting> {
    let mut settings = Vec::new();
    for class in classes {
        let budget = &class.budget;
        let beside = weight_slice(class, classes, parents);
        let mut add = |unit: &str, property, value: Option<Amount>| {
            settings.extend(value.map(|value| UnitSetting {
                unit: unit.to_owned(),
                property,
                value,
                class: class.name.clone(),
            }));
        };
        let absolute = |value: Option<u64>| value.map(Amount::Absolute);
        add(
            &class.slice,
            Property::Quota,
            absolute(budget.quota_usec_per_sec),
        );
        add(&beside, Property::Weight, absolute(budget.weight));
        add(&class.slice, Property::MemoryHigh, budget.memory_high);
        add(&beside, Property::IoWeight, absolute(budget.io_weight));
        add(&class.slice, Property::TasksMax, budget.tasks_max);
    }
    settings
}

/// Slices of systemd's own (systemd.special(7)), which hold far more than one class.
const SHARED: &[&str] = &["app.slice", "session.slice", "background.slice"];
/// Slices with unit files of ours: `units/user/`.
const SHIPPED: &[&str] = &[
    "protected.slice",
    "protected-workload.slice",
    "heavy.slice",
    "heavy-workload.slice",
    "browser.slice",
    "browser-automation.slice",
];

/// Whether a slice has a unit file of ours, which then holds its budget.
pub fn is_shipped(slice: &str) -> bool {
    SHIPPED.contains(&slice)
}

/// The slice that carries a class's weights: the outermost one that holds nothing but this class. For a
/// class whose outer slices are shared with others, its weight counts among those alone.
pub fn weight_slice(class: &Class, classes: &[Class], parents: &[String]) -> String {
    let chain = slice_chain(&class.slice);
    let holds = |slice: &String, inner: &str| slice_chain(inner).contains(slice);
    let alone = |slice: &&String| {
        !SHARED.contains(&slice.as_str())
            && !is_shipped(slice)
            && !parents.iter().any(|parent| holds(slice, parent))
            && !classes
                .iter()
                .any(|other| other.name != class.name && holds(slice, &other.slice))
    };
    chain.iter().find(alone).unwrap_or(&class.slice).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, slice: &str) -> Class {
        Class {
            budget: Budget {
                quota_usec_per_sec: Some(2_000_000),
                weight: Some(50),
                ..Budget::default()
            },
            ..Class::new(name, slice)
        }
    }

    #[test]
    fn amounts_are_written_as_systemd_writes_them() {
        for (text, amount) in [
            ("4G", Amount::Absolute(4 << 30)),
            ("1536M", Amount::Absolute(1536 << 20)),
            ("1000", Amount::Absolute(1000)),
            ("12.5%", Amount::Permyriad(1250)),
            ("infinity", Amount::Infinity),
        ] {
            assert_eq!(Amount::parse(text, true), Some(amount), "{text}");
            assert_eq!(amount.to_string(), text);
        }
        for bad in [
            "",
            "0",
            "-1",
            "4GB",
            "4.5G",
            "101%",
            "0%",
            "nan%",
            "lots",
            "18446744073709551615",
            "99999999T",
            "G",
        ] {
            assert_eq!(Amount::parse(bad, true), None, "{bad}");
        }
        assert_eq!(Amount::parse("1K", false), None, "tasks have no suffix");
    }

    #[test]
    fn a_weight_is_on_the_slice_that_stands_beside_the_others() {
        let heavy = class("heavy", "heavy-workload.slice");
        let carrier = |slice: &str, others: &[Class], parents: &[&str]| {
            let own = class("own", slice);
            let classes: Vec<Class> = others.iter().cloned().chain([own.clone()]).collect();
            let parents: Vec<String> = parents.iter().map(|unit| (*unit).to_owned()).collect();
            weight_slice(&own, &classes, &parents)
        };
        let only = std::slice::from_ref(&heavy);
        assert_eq!(carrier("inference.slice", only, &[]), "inference.slice");
        assert_eq!(carrier("batch-inference.slice", only, &[]), "batch.slice");
        // heavy.slice carries the weight of all that is in it.
        assert_eq!(
            carrier("heavy-inference.slice", only, &[]),
            "heavy-inference.slice"
        );
        assert_eq!(
            carrier("heavy-workload-big.slice", only, &[]),
            "heavy-workload-big.slice"
        );
        let batch = [heavy.clone(), class("batch", "batch-a.slice")];
        assert_eq!(carrier("batch-b.slice", &batch, &[]), "batch-b.slice");
        assert_eq!(carrier("batch-b-c.slice", &batch, &[]), "batch-b.slice");
        // app.slice is the whole desktop.
        assert_eq!(carrier("app-crunch.slice", only, &[]), "app-crunch.slice");
        assert_eq!(
            carrier("work-a.slice", only, &["work-b.slice"]),
            "work-a.slice"
        );
    }

    #[test]
    fn what_is_not_set_is_not_written() {
        assert_eq!(
            unit_settings(&[Class::new("heavy", "heavy-workload.slice")], &[]),
            []
        );
        let own = class("inference", "batch-inference.slice");
        let told: Vec<_> = unit_settings(&[own], &[])
            .into_iter()
            .map(|setting| (setting.unit, setting.property, setting.value))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "batch-inference.slice".to_owned(),
                    Property::Quota,
                    Amount::Absolute(2_000_000)
                ),
                (
                    "batch.slice".to_owned(),
                    Property::Weight,
                    Amount::Absolute(50)
                ),
            ]
        );
    }
}
