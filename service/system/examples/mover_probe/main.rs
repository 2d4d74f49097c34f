//! Exercises the mover against the systemd user manager that it runs under, one PASS or FAIL a case.
//!
//! To be run as an ordinary user, in a throw-away system: it re-executes the manager and makes and
//! stops scopes. `mover_probe [NAME…]` runs the cases whose names contain one of the words.

mod bench;
mod cases;
mod races;
mod refusals;
mod services;
mod stage;

use std::time::Instant;

use futures_lite::future::block_on;
use stage::{Outcome, Stage};

type Case = (&'static str, for<'a> fn(&'a Stage) -> stage::Running<'a>);

macro_rules! cases {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        &[$((stringify!($name), |stage| Box::pin($module::$name(stage)))),+]
    };
}

const CASES: &[Case] = cases![
    cases::an_emptied_scope_is_made_anew,
    cases::a_living_delegated_source_gets_its_work_back,
    cases::a_lost_inner_group_means_a_return_scope,
    cases::a_living_undelegated_source_means_a_return_scope,
    cases::stopping_a_living_source_stops_the_work,
    cases::stopping_a_dead_source_stops_the_work,
    cases::stopping_what_the_source_is_part_of_stops_the_work,
    services::stopping_a_service_stops_its_moved_child,
    services::a_service_without_main_process_does_not_kill_its_work,
    services::the_main_process_of_a_service_stays,
    refusals::a_foreign_process_stays,
    refusals::threads_and_pid_zero_are_refused,
    refusals::a_dead_process_leaves_no_scope,
    refusals::a_zombie_leaves_no_scope,
    refusals::a_hostile_description_writes_no_settings,
    cases::bounds_move_along,
    cases::a_second_workload_on_a_dead_source_is_not_waited_for,
    cases::a_lost_record_is_rebuilt,
    cases::work_is_promoted_and_keeps_its_way_back,
    cases::events_tell_of_ends_and_not_of_reloads,
    races::short_lived_children_leave_no_scope,
    races::a_forking_tree_moves_whole,
    races::a_reexec_loses_no_move,
    races::a_reexec_loses_no_recovery,
    races::a_reload_disturbs_no_move,
    races::a_recovery_that_was_cut_off_is_taken_up,
    races::two_recoveries_at_once_are_both_exact,
    bench::latency,
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let chosen = CASES.iter().filter(|(name, _)| {
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    });
    let (mut failed, mut skipped) = (0, 0);
    for (name, case) in chosen {
        let began = Instant::now();
        let outcome = block_on(async {
            let stage = Stage::new().await?;
            let outcome = case(&stage).await;
            // Of two failures the first tells more.
            let cleared = stage.clear().await;
            match (outcome, cleared) {
                (Ok(_), Err(error)) => Err(error),
                (Err(first), Err(error)) => Err(format!("{first}; {error}").into()),
                (outcome, Ok(())) => outcome,
            }
        });
        let took = began.elapsed().as_millis();
        match outcome {
            Ok(Outcome::Pass(text)) => println!("PASS {name} ({took} ms) {text}"),
            Ok(Outcome::Skip(why)) => {
                skipped += 1;
                println!("SKIP {name}: {why}");
            }
            Err(error) => {
                failed += 1;
                println!("FAIL {name} ({took} ms): {error}");
            }
        }
    }
    println!("{failed} failed, {skipped} skipped");
    std::process::exit(i32::from(failed > 0));
}
