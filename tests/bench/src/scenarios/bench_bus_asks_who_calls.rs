//! The bus lets nothing through that is not listed; what changes the machine takes polkit's word, a person is asked
//! only where the caller allows it, and root needs no polkit at all.

use anyhow::{Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::agent::Agent;
use crate::harness::call::{Caller, INTERFACE, Order, done, refused};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::tree;
use crate::harness::user::{OTHER, UID};
use crate::harness::wait::{self, PATIENCE};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-bus-asks-who-calls",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    boots: &[run],
};

const DENIED_BY_THE_BUS: &str = "org.freedesktop.DBus.Error.AccessDenied";
const NOT_AUTHORIZED: &str = "org.workloadguard.Error.NotAuthorized";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

fn run() -> Verdict {
    tree::install()?;
    the_bus_denies_what_is_not_listed()?;
    polkit_denies_by_default()?;
    a_person_is_asked_only_where_the_caller_allows_it()?;
    a_rule_grants_it_to_a_group()?;
    root_needs_no_polkit()
}

fn the_bus_denies_what_is_not_listed() -> Result<()> {
    for (interface, member) in [
        (INTERFACE, "Frobnicate"),
        (PROPERTIES, "Set"),
        ("org.freedesktop.DBus.ObjectManager", "GetManagedObjects"),
    ] {
        refused(UID, &Order::of(interface, member), DENIED_BY_THE_BUS)?;
    }
    // root passes the bus, and the object knows no such member.
    let unknown = "org.freedesktop.DBus.Error.UnknownMethod";
    refused(0, &Order::of(INTERFACE, "Frobnicate"), unknown)?;
    done(
        UID,
        &Order::of("org.freedesktop.DBus.Introspectable", "Introspect"),
    )?;
    step("the bus lets the listed members through and no other");
    Ok(())
}

fn polkit_denies_by_default() -> Result<()> {
    for (order, action) in [
        (Order::apply("multi-core"), "org.workloadguard.bench.apply"),
        (Order::restore(), "org.workloadguard.bench.restore"),
        (
            Order::of(INTERFACE, "RegenerateBootEntries"),
            "org.workloadguard.bench.regenerate-boot-entries",
        ),
        (
            Order::next_boot("multi-core"),
            "org.workloadguard.bench.set-next-boot",
        ),
    ] {
        // Allowing it does not help where nobody is there to be asked.
        for order in [order.clone(), order.interactive()] {
            let text = refused(UID, &order, NOT_AUTHORIZED)?;
            ensure!(
                text.contains(action) && text.contains("/etc/polkit-1/rules.d"),
                "the refusal does not name {action} and the way out: {text}"
            );
        }
    }
    tree::is_untouched()?;
    step("polkit denies it to a user by default, by name, and nothing is touched");
    Ok(())
}

fn a_person_is_asked_only_where_the_caller_allows_it() -> Result<()> {
    let order = Order::apply("multi-core");
    let mut caller = Caller::new(UID, &order)?;
    let agent = Agent::of(UID, caller.pid(), true)?;
    caller.go()?;
    let answer = caller.answer()?;
    ensure!(
        answer.error.as_deref() == Some(NOT_AUTHORIZED) && agent.asked().is_empty(),
        "{answer:?}, asked {:?}",
        agent.asked()
    );
    drop(agent);
    tree::is_untouched()?;

    for agrees in [false, true] {
        let mut caller = Caller::new(UID, &order.clone().interactive())?;
        let agent = Agent::of(UID, caller.pid(), agrees)?;
        caller.go()?;
        let answer = caller.answer()?;
        let asked = agent.asked();
        ensure!(
            asked.len() == 1
                && asked[0].starts_with("org.workloadguard.bench.apply: Authentication is required to prepare"),
            "asked {asked:?}, answered {answer:?}"
        );
        if agrees {
            ensure!(answer.error.is_none(), "{answer:?}");
            tree::is_prepared()?;
        } else {
            ensure!(answer.error.as_deref() == Some(NOT_AUTHORIZED), "{answer:?}");
            tree::is_untouched()?;
        }
    }
    done(0, &Order::restore())?;
    tree::is_untouched()?;
    step("a person is asked where the caller allows it, and decides");
    Ok(())
}

/// The shipped example: it grants both to a group.
const RULE: &str = "/opt/workload-guard/polkit/50-bench-profiles.rules.example";

fn a_rule_grants_it_to_a_group() -> Result<()> {
    command::ok(&["groupadd", "bench"])?;
    command::ok(&["usermod", "--append", "--groups", "bench", "dev"])?;
    std::fs::copy(RULE, "/etc/polkit-1/rules.d/50-bench-profiles.rules")?;
    // polkitd reads rules again when it sees the file.
    wait::until("the rule counts", PATIENCE, || {
        done(UID, &Order::restore()).map(Some)
    })?;
    done(UID, &Order::apply("multi-core"))?;
    tree::is_prepared()?;
    for order in [Order::apply("single-core"), Order::restore()] {
        refused(OTHER, &order, NOT_AUTHORIZED)?;
    }
    // Each action is granted for itself.
    for order in [
        Order::of(INTERFACE, "RegenerateBootEntries"),
        Order::next_boot("multi-core"),
    ] {
        refused(UID, &order, NOT_AUTHORIZED)?;
    }
    tree::is_prepared()?;
    done(UID, &Order::restore())?;
    tree::is_untouched()?;
    step("a rule grants it to the group that it names, and to no other user");
    Ok(())
}

fn root_needs_no_polkit() -> Result<()> {
    command::ok(&["systemctl", "mask", "--runtime", "--now", "polkit.service"])?;
    done(0, &Order::apply("multi-core"))?;
    tree::is_prepared()?;
    let text = refused(UID, &Order::restore(), NOT_AUTHORIZED)?;
    ensure!(text.contains("polkit cannot be asked"), "{text}");
    done(0, &Order::restore())?;
    tree::is_untouched()?;
    step("without polkitd root goes on and a user is refused");
    Ok(())
}
