//! `bench status`.

use bench_profile::profile::Profile;
use bench_system::canary::{self, Outcome, Request};
use bench_system::root::Root;
use bench_system::status::{self, Environment, Facts, Finding, Level};
use serde::Serialize;

use crate::error::CliError;

/// The JSON of `bench status`; its help documents the keys.
#[derive(Serialize)]
struct View {
    booted: Option<Profile>,
    expected: Option<Profile>,
    ok: bool,
    environment: Environment,
    checks: Vec<Finding>,
    canary: Option<Outcome>,
}

/// Reports, or asserts when a profile is expected; answers the exit status.
pub fn run(root: &Root, expected: Option<Profile>, json: bool) -> Result<u8, CliError> {
    let facts = Facts::gather(root);
    let booted = facts.booted.clone().ok().flatten();
    let compared = expected.or(booted);
    let mut checks = match compared {
        Some(profile) => status::judge(&facts, profile),
        None => vec![normal_boot(&facts)],
    };
    // Off its profile a canary would say nothing about it.
    let outcome = match compared {
        Some(profile) if booted == compared && profile != Profile::SingleCore => {
            let (finding, outcome) = prove(&facts, profile);
            checks.push(finding);
            outcome
        }
        _ => None,
    };
    let view = View {
        booted,
        expected: compared,
        ok: compared.is_some() && checks.iter().all(|check| check.level != Level::Differs),
        environment: Environment::read(root, &facts),
        checks,
        canary: outcome,
    };
    let text = if json {
        crate::render::to_json(&view)
    } else {
        text(&view, expected.is_some())
    };
    crate::print(&text)?;
    Ok(u8::from(expected.is_some() && !view.ok))
}

/// What there is to say when there is no profile to compare with.
fn normal_boot(facts: &Facts) -> Finding {
    Finding {
        id: "profile",
        level: Level::Differs,
        text: match &facts.booted {
            Err(error) => error.clone(),
            Ok(_) => "a normal boot, in no benchmark profile: nothing is compared (--expect PROFILE does)".into(),
        },
    }
}

fn prove(facts: &Facts, profile: Profile) -> (Finding, Option<Outcome>) {
    let finding = |level, text: String| Finding {
        id: "canary",
        level,
        text,
    };
    let (Ok(file), Ok(topology)) = (&facts.machine, &facts.topology) else {
        return (
            finding(
                Level::Note,
                "not run: the CPUs to measure on are not known".into(),
            ),
            None,
        );
    };
    let cpus = match profile {
        Profile::Unlimited => topology.online.clone(),
        _ => file.machine.cpus.bench.clone(),
    };
    let request = Request::over(cpus, Some(topology), file.machine.canary_divisor);
    match canary::run(&request) {
        Ok(outcome) => {
            let level = if outcome.passed() {
                Level::Ok
            } else {
                Level::Differs
            };
            let said = canary::heading(&request) + &canary::text(&outcome, &topology.isolated);
            (finding(level, said.trim_end().to_owned()), Some(outcome))
        }
        Err(error) => (finding(Level::Differs, error.to_string()), None),
    }
}

/// For a person. Only an assertion knows of failure: a report must not look like one.
fn text(view: &View, asserted: bool) -> String {
    let mut text = String::from("observed environment\n");
    for item in &view.environment.0 {
        text.push_str(&format!("  {:<22} {}\n", item.name, item.value));
    }
    text.push_str("checks\n");
    for check in &view.checks {
        let word = match (check.level, asserted) {
            (Level::Ok, _) => "ok",
            (Level::Note, _) => "note",
            (Level::Differs, false) => "WARN",
            (Level::Differs, true) => "FAIL",
        };
        let lines = check.text.replace('\n', "\n         ");
        text.push_str(&format!("  {word:<5}  {}: {lines}\n", check.id));
    }
    match (view.expected, asserted) {
        (Some(profile), true) if view.ok => {
            text.push_str(&format!("the machine is in the state of {profile}\n"));
        }
        (Some(profile), true) => {
            text.push_str(&format!("the machine is NOT in the state of {profile}\n"));
        }
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(level: Level) -> View {
        View {
            booted: None,
            expected: Some(Profile::MultiCore),
            ok: level != Level::Differs,
            environment: Environment(Vec::new()),
            checks: vec![Finding {
                id: "swap",
                level,
                text: "on: /dev/sda2".into(),
            }],
            canary: None,
        }
    }

    #[test]
    fn a_report_knows_no_failure() {
        let report = text(&view(Level::Differs), false);
        assert!(
            report.contains("  WARN   swap: on: /dev/sda2\n"),
            "{report}"
        );
        assert!(
            !report.contains("FAIL") && !report.contains("NOT"),
            "{report}"
        );
    }

    #[test]
    fn an_assertion_says_which_and_how_it_ended() {
        let failed = text(&view(Level::Differs), true);
        assert!(failed.contains("  FAIL   swap: on"), "{failed}");
        assert!(
            failed.contains("NOT in the state of multi-core"),
            "{failed}"
        );
        assert!(text(&view(Level::Ok), true).contains("is in the state of multi-core"));
    }
}
