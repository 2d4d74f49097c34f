//! A mistake in `[shadow]` turns the shadow off, and nothing else: what only logs must not keep routing
//! from its settings.

use super::keys::KEYS;
use super::kind::Value;
use super::layers::Values;
use crate::source::Mistake;

const SECTION: &str = "shadow";
const ENABLED: &str = "shadow.enabled";
const ROUTE: &str = "shadow.route_threshold";
const CLEAR: &str = "shadow.clear_threshold";
/// The origin that the effective view shows for the switch then.
const TURNED_OFF: &str = "off, since [shadow] is wrong";

/// Takes the wrong values of the section out of `mistakes`. An unknown key stays there, since nobody knows
/// what it was to be.
pub fn take(mistakes: &mut Vec<Mistake>) -> Vec<Mistake> {
    let ours = |mistake: &Mistake| match mistake {
        Mistake::BadValue { key, .. } => key.split('.').next() == Some(SECTION),
        _ => false,
    };
    let (taken, left) = std::mem::take(mistakes).into_iter().partition(ours);
    *mistakes = left;
    taken
}

/// What cannot be together.
pub fn check(values: &Values, mistakes: &mut Vec<Mistake>) {
    let (Some((clear, clear_origin)), Some((route, route_origin))) =
        (values.get(CLEAR), values.get(ROUTE))
    else {
        return;
    };
    if clear.number() >= route.number() {
        mistakes.push(Mistake::Impossible {
            a: format!("{CLEAR} = {clear}"),
            a_origin: clear_origin.clone(),
            b: format!("{ROUTE} = {route}"),
            b_origin: route_origin.clone(),
            why: "one average would be hot and low at once; make the first one smaller".to_owned(),
        });
    }
}

/// Turns the shadow off, if it is on.
pub fn turn_off(values: &mut Values) {
    for (key, value) in KEYS.iter().zip(&mut values.keys) {
        if key.name == ENABLED && value.0.switch() {
            *value = (Value::Switch(false), TURNED_OFF.to_owned());
        }
    }
}
