//! A machine as the text of its file, each key with the reason for its value.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Machine, keys};
use crate::profile::Profile;

/// Why each key has its value, by dotted key: a comment line each. The empty key is the file's head.
pub type Reasons = BTreeMap<String, Vec<String>>;

/// The file's text; [`super::MachineFile::parse`] reads it back as the same machine.
pub fn render(machine: &Machine, reasons: &Reasons) -> String {
    let mut page = Page {
        text: String::new(),
        reasons,
        section: String::new(),
    };
    page.comment("");
    let cpus = &machine.cpus;
    page.key(keys::BENCH, &quoted(&cpus.bench.to_string()));
    page.key(keys::HOUSEKEEPING, &quoted(&cpus.housekeeping.to_string()));
    page.key(keys::SINGLE_CORE, &cpus.single_core.to_string());
    page.key(keys::PARKED, &quoted(&cpus.parked.to_string()));
    page.key(
        keys::EXPECTED_ONLINE,
        &quoted(&cpus.expected_online.to_string()),
    );
    page.key(
        keys::KERNEL_ENTRY_MATCH,
        &quoted(&machine.kernel_entry_match),
    );
    page.key(keys::MASKED, &list(&machine.masked_units));
    page.key(keys::NOISY, &list(&machine.noisy_units));
    page.key(keys::DIVISOR, &machine.canary_divisor.to_string());
    for profile in Profile::ALL {
        let switches = machine.switches(profile);
        page.key(&keys::boost(profile), &switches.boost.to_string());
        page.key(&keys::smt(profile), &switches.smt.to_string());
    }
    page.text
}

struct Page<'a> {
    text: String,
    reasons: &'a Reasons,
    section: String,
}

impl Page<'_> {
    fn key(&mut self, key: &str, value: &str) {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        if section != self.section {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{gap}[{section}]");
            self.section = section.to_owned();
        }
        self.comment(key);
        let _ = writeln!(self.text, "{name} = {value}");
    }

    fn comment(&mut self, key: &str) {
        for reason in self.reasons.get(key).into_iter().flatten() {
            for line in reason.lines() {
                let _ = writeln!(self.text, "# {line}");
            }
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() {
        return "[]".to_owned();
    }
    let lines: String = texts
        .iter()
        .map(|text| format!("    {},\n", quoted(text)))
        .collect();
    format!("[\n{lines}]")
}
