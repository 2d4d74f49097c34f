//! The shadow: on by its switch, off by a mistake of its own, which touches nothing else.

use super::super::Settings;
use super::{env, errors, file, good, origin};

#[test]
fn what_was_not_supported_before_is_read() {
    let loaded = good(&env(&[
        ("WORKLOAD_GUARD_ADAPTIVE", "TRUE"),
        ("WORKLOAD_GUARD_ROUTE_THRESHOLD", "0.5"),
        ("WORKLOAD_GUARD_SHADOW", "on"),
        ("WORKLOAD_GUARD_SHADOW_EWMA_ALPHA", "0.4"),
    ]));
    assert!(loaded.settings.adaptive.enabled && loaded.settings.shadow.enabled);
    assert_eq!(loaded.settings.adaptive.route_threshold, 0.5);
    assert_eq!(loaded.settings.shadow.ewma_alpha, 0.4);
    assert_eq!(
        (loaded.warnings, loaded.shadow_mistakes),
        (Vec::<String>::new(), Vec::new())
    );
}

#[test]
fn a_wrong_shadow_turns_itself_off_and_leaves_routing_on() {
    let loaded = good(&file(
        "[routing]\ncpu_threshold = 50\n[shadow]\nenabled = true\newma_alpha = 1.5\n",
    ));
    assert_eq!(loaded.settings.routing.cpu_threshold, 50.0);
    assert!(!loaded.settings.shadow.enabled);
    let told: Vec<String> = loaded
        .shadow_mistakes
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "guard.toml:5: `shadow.ewma_alpha` must be a number above 0 and at most 1, not the number 1.5"
        ]
    );
    assert_eq!(
        origin(&loaded, "shadow.enabled"),
        ("false", "off, since [shadow] is wrong")
    );
}

#[test]
fn a_shadow_that_is_hot_and_low_at_once_is_off() {
    let loaded = good(&env(&[
        ("WORKLOAD_GUARD_SHADOW", "true"),
        ("WORKLOAD_GUARD_SHADOW_CLEAR_THRESHOLD", "70"),
    ]));
    assert!(!loaded.settings.shadow.enabled);
    assert_eq!(
        loaded.shadow_mistakes[0].to_string(),
        "`shadow.clear_threshold = 70` (WORKLOAD_GUARD_SHADOW_CLEAR_THRESHOLD) and \
         `shadow.route_threshold = 70` (default) cannot both be: one average would be hot and low at once; \
         make the first one smaller"
    );
}

#[test]
fn a_switch_that_is_neither_on_nor_off_is_off() {
    let loaded = good(&env(&[("WORKLOAD_GUARD_SHADOW", "maybe")]));
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.shadow_mistakes.len(), 1);
    // Of what routes it is a mistake like any other.
    assert!(
        errors(&env(&[("WORKLOAD_GUARD_ADAPTIVE", "maybe")]))
            .ends_with("`adaptive.enabled` must be true or false, not \"maybe\"")
    );
}

#[test]
fn an_unknown_key_is_a_mistake_in_the_shadow_too() {
    assert_eq!(
        errors(&file("[shadow]\newma_alfa = 0.5\n")),
        "guard.toml:2: unknown key `shadow.ewma_alfa`, did you mean `shadow.ewma_alpha`?"
    );
}
