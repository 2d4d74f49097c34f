//! `diagnose`.

use serde::Serialize;
use workload_guard_dbus::history1::{FindingRow, ShareRow};

use super::style::{Style, Tone, fit};
use crate::insight::Diagnosis;

/// As JSON; the help of `diagnose` documents the keys.
pub fn json(diagnosis: &Diagnosis) -> String {
    #[derive(Serialize)]
    struct View<'a> {
        pressure: &'a str,
        pressure_text: &'a str,
        attribution: Vec<Share<'a>>,
        findings: &'a [FindingRow],
    }
    #[derive(Serialize)]
    struct Share<'a> {
        who: &'a str,
        cpu: f64,
        cpu_while_high: Option<f64>,
    }
    super::to_json(&View {
        pressure: &diagnosis.pressure,
        pressure_text: &diagnosis.pressure_text,
        attribution: diagnosis
            .attribution
            .iter()
            .map(|row| Share {
                who: &row.who,
                cpu: row.cpu,
                cpu_while_high: while_high(row),
            })
            .collect(),
        findings: &diagnosis.findings,
    })
}

/// Negative on the bus when pressure never was high.
fn while_high(row: &ShareRow) -> Option<f64> {
    Some(row.cpu_while_high).filter(|cpu| *cpu >= 0.0)
}

/// What was measured, who used CPU, and each finding.
pub fn text(diagnosis: &Diagnosis, style: &Style) -> String {
    let tone = match diagnosis.pressure.as_str() {
        "normal" => Tone::Good,
        _ => Tone::Warn,
    };
    let level = style.paint(tone, &diagnosis.pressure.to_uppercase());
    let mut lines = vec![format!(
        "CPU pressure in the last hour: {level} ({})",
        fit(&diagnosis.pressure_text, None)
    )];
    if !diagnosis.attribution.is_empty() {
        lines.push("CPU used meanwhile, which is no proof of a cause:".to_owned());
        for row in &diagnosis.attribution {
            let high = while_high(row).map_or(String::new(), |cpu| {
                format!(", {cpu:.0}% while pressure was high")
            });
            lines.push(format!(
                "  {:<14} {:.0}% of one CPU on average{high}",
                row.who, row.cpu
            ));
        }
    }
    if diagnosis.findings.is_empty() {
        lines.push(style.paint(Tone::Good, "nothing to report"));
    }
    for finding in &diagnosis.findings {
        lines.push(String::new());
        let tone = match finding.severity.as_str() {
            "note" => Tone::Head,
            _ => Tone::Warn,
        };
        let head = format!("{}: {}", finding.severity, fit(&finding.title, None));
        lines.push(format!("{} [{}]", style.paint(tone, &head), finding.id));
        lines.extend(
            finding
                .evidence
                .iter()
                .map(|line| format!("  - {}", fit(line, None))),
        );
        lines.push(format!("  next: {}", fit(&finding.next, None)));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style() -> Style {
        Style {
            width: None,
            colour: false,
            now_usec: 0,
        }
    }

    #[test]
    fn a_finding_has_its_evidence_and_its_next_step() {
        let diagnosis = Diagnosis {
            pressure: "high".into(),
            pressure_text: "4 of 12 readings".into(),
            attribution: vec![
                ShareRow {
                    who: "heavy".into(),
                    cpu: 120.4,
                    cpu_while_high: 390.0,
                },
                ShareRow {
                    who: "outside".into(),
                    cpu: 20.0,
                    cpu_while_high: -1.0,
                },
            ],
            findings: vec![FindingRow {
                id: "pressure-high".into(),
                severity: "warning".into(),
                title: "CPU was short".into(),
                evidence: vec!["observed: a\x1b[2Jb".into()],
                next: "lower it".into(),
            }],
        };
        assert_eq!(
            text(&diagnosis, &style()),
            "CPU pressure in the last hour: HIGH (4 of 12 readings)\n\
             CPU used meanwhile, which is no proof of a cause:\n\
             \x20 heavy          120% of one CPU on average, 390% while pressure was high\n\
             \x20 outside        20% of one CPU on average\n\
             \n\
             warning: CPU was short [pressure-high]\n\
             \x20 - observed: a\u{fffd}[2Jb\n\
             \x20 next: lower it\n"
        );
        let value: serde_json::Value = serde_json::from_str(&json(&diagnosis)).expect("JSON");
        assert_eq!(
            value["attribution"][1]["cpu_while_high"],
            serde_json::Value::Null
        );
        assert_eq!(value["findings"][0]["next"], "lower it");
    }

    #[test]
    fn nothing_found_is_said() {
        let diagnosis = Diagnosis {
            pressure: "normal".into(),
            pressure_text: "12 readings".into(),
            attribution: Vec::new(),
            findings: Vec::new(),
        };
        assert!(text(&diagnosis, &style()).contains("nothing to report"));
    }
}
