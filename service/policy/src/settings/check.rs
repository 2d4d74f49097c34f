//! The meaning of the settings as a whole: what cannot be together.

use super::Settings;
use super::class_keys::{self, CLASS_KEYS, PATTERNS, SLICE};
use super::keys::{FIXED_CLASSES, KEYS, defaults};
use super::layers::{ClassValues, Values};
use super::slice_name::holds;
use crate::budget::{Property, is_shipped};
use crate::class::Class;
use crate::source::Mistake;

const PARENTS: &str = "watch.parent_units";
const PROTECTED: &str = "protected";

/// The settings that `values` mean.
pub fn settings(
    values: &Values,
    mistakes: &mut Vec<Mistake>,
    warnings: &mut Vec<String>,
) -> Settings {
    let mut settings = defaults();
    for (key, (value, _)) in KEYS.iter().zip(&values.keys) {
        (key.apply)(&mut settings, value);
    }
    settings.classes = classes(values, mistakes);
    let (root, proper): (Vec<&Class>, Vec<&Class>) = settings
        .classes
        .iter()
        .partition(|class| class.slice == "-.slice");
    for class in root {
        mistakes.push(Mistake::BadValue {
            origin: class_pair(values, class).1,
            key: format!("classes.{}.slice", class.name),
            expected: "a slice other than the root of all slices".to_owned(),
            found: "\"-.slice\"".to_owned(),
        });
    }
    slices_apart(values, &proper, mistakes);
    parents_apart(values, &settings.watch.parent_units, &proper, mistakes);
    settings.watch.parent_units = outermost(&settings.watch.parent_units, warnings);
    if settings.recovery.cpu_threshold >= settings.routing.cpu_threshold {
        warnings.push(format!(
            "recovery.cpu_threshold ({}) is not below routing.cpu_threshold ({}): work that is still hot can come back and be routed again",
            settings.recovery.cpu_threshold, settings.routing.cpu_threshold
        ));
    }
    quota_pairs(values, mistakes);
    settings
}

/// Bounds and thresholds that must not cross.
fn quota_pairs(values: &Values, mistakes: &mut Vec<Mistake>) {
    const PAIRS: &[(&str, &str, bool, &str)] = &[
        (
            "quota.min",
            "quota.max",
            true,
            "no quota would be between them; make the first one smaller",
        ),
        (
            "quota.pressure_low",
            "quota.pressure_high",
            false,
            "one pressure would be low and high at once; make the first one smaller",
        ),
        (
            "quota.sched_delay_low_ms",
            "quota.sched_delay_high_ms",
            false,
            "one delay would be low and high at once; make the first one smaller",
        ),
    ];
    for (low, high, may_be_equal, why) in PAIRS {
        let (Some((a, a_origin)), Some((b, b_origin))) = (values.get(low), values.get(high)) else {
            continue;
        };
        let (least, most) = (a.number(), b.number());
        if least > most || (least == most && !may_be_equal) {
            mistakes.push(Mistake::Impossible {
                a: format!("{low} = {a}"),
                a_origin: a_origin.clone(),
                b: format!("{high} = {b}"),
                b_origin: b_origin.clone(),
                why: (*why).to_owned(),
            });
        }
    }
}

fn classes(values: &Values, mistakes: &mut Vec<Mistake>) -> Vec<Class> {
    let mut classes = Vec::new();
    for (name, found) in &values.classes {
        let mut class = Class::new(name, "");
        for (key, (value, origin)) in CLASS_KEYS
            .iter()
            .filter_map(|key| Some((key, found.get(key.name)?)))
        {
            (key.apply)(&mut class, value, origin);
        }
        let bad = |key: &str, expected: &str, text: &str| Mistake::BadValue {
            origin: found
                .get(key)
                .map_or_else(String::new, |(_, origin)| origin.clone()),
            key: format!("classes.{name}.{key}"),
            expected: expected.to_owned(),
            found: text.to_owned(),
        };
        if !class.slice.is_empty() {
            mistakes.extend(class_alone(&class, found, bad));
            classes.push(class);
        } else if FIXED_CLASSES.contains(&name.as_str()) {
            let expected = "a slice, since this class cannot be taken away";
            mistakes.push(bad(SLICE, expected, "empty"));
        }
    }
    classes
}

/// What a class cannot have, whatever the others are.
fn class_alone(
    class: &Class,
    found: &ClassValues,
    bad: impl Fn(&str, &str, &str) -> Mistake,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if class.name == PROTECTED && !class.patterns.is_empty() {
        mistakes.push(bad(
            PATTERNS,
            "left out, since who is protected is the person's word (`workload-guard protect`)",
            "a list",
        ));
    }
    // One place for a budget: the unit file, where there is one of ours.
    if is_shipped(&class.slice) && !class.budget.is_empty() {
        for property in Property::ALL {
            let Some((value, _)) = found
                .get(property.key())
                .filter(|(value, _)| *value != class_keys::Value::None)
            else {
                continue;
            };
            let slice = &class.slice;
            mistakes.push(bad(
                property.key(),
                &format!(
                    "left out, since the budget of {slice} is in its unit file (`systemctl --user edit {slice}`)"
                ),
                &value.to_string(),
            ));
        }
    }
    mistakes
}

/// Two classes in one slice have one budget; and protected work is inside no other budget.
fn slices_apart(values: &Values, classes: &[&Class], mistakes: &mut Vec<Mistake>) {
    for (n, a) in classes.iter().enumerate() {
        for b in &classes[n + 1..] {
            let nested = holds(&a.slice, &b.slice) || holds(&b.slice, &a.slice);
            let protected = a.name == PROTECTED || b.name == PROTECTED;
            let why = if a.slice == b.slice {
                "two classes with one slice share one budget; give each its own"
            } else if nested && protected {
                "protected work and other work would be inside one budget; a dash in a slice's name nests it"
            } else {
                continue;
            };
            mistakes.push(impossible(values, a, class_pair(values, b), why));
        }
    }
}

/// Work that was routed must not be watched where it is: it would be routed again.
fn parents_apart(
    values: &Values,
    parents: &[String],
    classes: &[&Class],
    mistakes: &mut Vec<Mistake>,
) {
    let origin = values
        .get(PARENTS)
        .map_or_else(String::new, |(_, origin)| origin.clone());
    for parent in parents {
        for class in classes.iter().filter(|class| class.name != PROTECTED) {
            let why = if holds(parent, &class.slice) {
                "routed work would be watched, and routed again; watch a slice that does not hold a class's slice"
            } else if holds(&class.slice, parent) {
                "what is watched would have this class's budget already; watch a slice outside of it"
            } else {
                continue;
            };
            mistakes.push(impossible(
                values,
                class,
                (format!("{PARENTS} = [{parent:?}]"), origin.clone()),
                why,
            ));
        }
    }
}

fn class_pair(values: &Values, class: &Class) -> (String, String) {
    let origin = values
        .classes
        .get(&class.name)
        .and_then(|found| found.get(SLICE))
        .map_or("", |(_, origin)| origin);
    (
        format!("classes.{}.slice = {:?}", class.name, class.slice),
        origin.to_owned(),
    )
}

fn impossible(values: &Values, class: &Class, other: (String, String), why: &str) -> Mistake {
    let (a, a_origin) = class_pair(values, class);
    let (b, b_origin) = other;
    Mistake::Impossible {
        a,
        a_origin,
        b,
        b_origin,
        why: why.to_owned(),
    }
}

/// Without those that are inside another one, which are watched with it.
fn outermost(parents: &[String], warnings: &mut Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for (n, parent) in parents.iter().enumerate() {
        let outer = parents
            .iter()
            .enumerate()
            .find(|(m, other)| *m != n && holds(other, parent) && (*other != parent || *m < n));
        match outer {
            Some((_, outer)) => warnings.push(format!(
                "{PARENTS}: {parent} is watched with {outer} already"
            )),
            None => kept.push(parent.clone()),
        }
    }
    kept
}
