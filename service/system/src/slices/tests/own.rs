//! Budgets of the user's own classes: set, remembered, put back.

use guard_policy::budget::{Amount, Budget, Property, UnitSetting, unit_settings};
use guard_policy::class::Class;
use guard_policy::health::Problem;

use super::{Fake, MANAGER, Unit, installed};
use crate::slices::{Given, GivenBudgets};

fn own() -> Class {
    Class {
        budget: Budget {
            quota_usec_per_sec: Some(3_000_000),
            weight: Some(50),
            memory_high: Some(Amount::Permyriad(5000)),
            ..Budget::default()
        },
        ..Class::new("inference", "batch-inference.slice")
    }
}

fn wanted() -> Vec<UnitSetting> {
    unit_settings(&[own()], &[])
}

/// A fake with both slices of the class, as systemd makes them up without unit files.
fn fake(controllers: &str) -> Fake {
    let fake = installed(controllers);
    for unit in ["batch.slice", "batch-inference.slice"] {
        fake.unit(
            unit,
            Unit {
                active: true,
                quota: u64::MAX,
                weight: u64::MAX,
                cpu_max: "max 100000",
            },
        );
        fake.apply(unit);
    }
    fake
}

/// What one look does, as the daemon does it.
fn look(fake: &Fake, given: &mut GivenBudgets, wanted: &[UnitSetting]) -> Vec<Problem> {
    look_beside(fake, given, wanted, None)
}

/// The same while somebody else moves the quota of a unit.
fn look_beside(
    fake: &Fake,
    given: &mut GivenBudgets,
    wanted: &[UnitSetting],
    steered: Option<&str>,
) -> Vec<Problem> {
    fake.with(async |connection| {
        given.prepare(connection, wanted).await.unwrap();
        given.apply(connection, wanted, steered).await.unwrap()
    })
}

/// As after a restart: what was saved.
fn saved(given: &GivenBudgets) -> GivenBudgets {
    GivenBudgets::new(given.iter().cloned().collect::<Vec<Given>>())
}

const SET: [&str; 3] = [
    "set batch-inference.slice CPUQuotaPerSecUSec=3000000",
    "set batch.slice CPUWeight=50",
    "set batch-inference.slice MemoryHighScale=2147483647",
];

#[test]
fn what_is_set_is_set_once_and_put_back_by_whoever_finds_it() {
    let fake = fake("cpu memory pids");
    let mut given = GivenBudgets::default();
    assert_eq!(look(&fake, &mut given, &wanted()), []);
    assert_eq!(fake.calls(), SET);
    // The next look, and the next guard, find it done.
    assert_eq!(look(&fake, &mut given, &wanted()), []);
    let mut given = saved(&given);
    assert_eq!(look(&fake, &mut given, &wanted()), []);
    assert_eq!(fake.calls().len(), 3);
    assert_eq!(look(&fake, &mut given, &[]), []);
    let unset = u64::MAX;
    assert_eq!(
        fake.calls()[3..],
        [
            format!("set batch-inference.slice CPUQuotaPerSecUSec={unset}"),
            format!("set batch-inference.slice MemoryHigh={unset}"),
            format!("set batch.slice CPUWeight={unset}"),
        ]
    );
    assert_eq!(given.iter().count(), 0);
}

#[test]
fn what_was_lost_is_set_again_and_what_another_set_is_left() {
    let fake = fake("cpu memory pids");
    let mut given = GivenBudgets::default();
    look(&fake, &mut given, &wanted());
    fake.units
        .borrow_mut()
        .get_mut("batch.slice")
        .unwrap()
        .weight = u64::MAX;
    look(&fake, &mut given, &wanted());
    assert_eq!(fake.calls()[3..], ["set batch.slice CPUWeight=50"]);
    fake.units
        .borrow_mut()
        .get_mut("batch.slice")
        .unwrap()
        .weight = 700;
    look(&fake, &mut given, &[]);
    assert!(
        !fake.calls()[4..]
            .iter()
            .any(|call| call.contains("batch.slice")),
        "{:?}",
        fake.calls()
    );
}

#[test]
fn a_quota_that_is_steered_is_left_alone_until_it_is_not() {
    let fake = fake("cpu memory pids");
    let mut given = GivenBudgets::default();
    look(&fake, &mut given, &wanted());
    let slice = "batch-inference.slice";
    let quota = |usec| fake.units.borrow_mut().get_mut(slice).unwrap().quota = usec;
    quota(1_500_000);
    look_beside(&fake, &mut given, &wanted(), Some(slice));
    assert_eq!(fake.calls().len(), SET.len(), "{:?}", fake.calls());
    look(&fake, &mut given, &wanted());
    assert_eq!(fake.calls()[SET.len()..], [SET[0]]);
}

#[test]
fn a_guard_killed_before_the_first_call_left_what_is_needed() {
    let fake = fake("cpu memory pids");
    let mut given = GivenBudgets::default();
    fake.with(async |connection| given.prepare(connection, &wanted()).await.unwrap());
    // Killed after its calls, before it could save anything more.
    look(&fake, &mut saved(&given), &wanted());
    let mut next = saved(&given);
    look(&fake, &mut next, &[]);
    assert_eq!(fake.calls().len(), 6, "{:?}", fake.calls());
    assert_eq!(next.iter().count(), 0);
}

#[test]
fn the_row_tells_what_the_kernel_holds_and_who_said_so() {
    let fake = fake("cpu memory pids");
    look(&fake, &mut GivenBudgets::default(), &wanted());
    let group = Fake::cgroup("batch-inference.slice");
    fake.write(&group, "cpu.max", "300000 100000");
    fake.write(&group, "memory.high", "8000000000");
    fake.write(&group, "pids.max", "max");
    let found = fake.inspect(&[own()], &[]);
    let row = &found.classes[0];
    assert_eq!(
        (row.quota, row.weight, row.memory_high),
        (300, 50, 8_000_000_000)
    );
    assert_eq!((row.tasks_max, row.io_weight), (0, 0));
    assert_eq!(row.from_settings, ["quota", "weight", "memory_high"]);
    assert_eq!(found.problems, []);
}

#[test]
fn a_controller_that_is_missing_is_told_with_the_key_that_needs_it() {
    let fake = fake("cpu pids");
    look(&fake, &mut GivenBudgets::default(), &wanted());
    let found = fake.inspect(&[own()], &[]);
    let file = fake
        .tree
        .path()
        .join(&MANAGER[1..])
        .join("cgroup.controllers");
    let missing = Problem::NoController {
        controller: Property::MemoryHigh.controller(),
        class: "inference".to_owned(),
        key: "memory_high",
        controllers_file: file.display().to_string(),
    };
    assert!(found.problems.contains(&missing), "{:?}", found.problems);
}
