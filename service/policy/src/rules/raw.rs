//! The shape of a rules file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::RuleName;
use super::pattern::Pattern;
use super::rule::Rule;
use crate::class::is_class_name;
use crate::source::{Layer, Mistake, Notes, describe, nearest, strings};

const KEYS: &[&str] = &[
    "name",
    "class",
    "reason",
    "programs",
    "subcommands",
    "arguments",
    "unless",
    "light",
    "values",
    "bundled",
    "needs_operand",
];
const LIST: &str = "a list of strings that are not empty";

/// The rules of a file; what is wrong is added to `mistakes`.
pub fn read(layer: &Layer, mistakes: &mut Vec<Mistake>) -> Vec<Rule> {
    let mut file = File(Notes::new(layer));
    let table = file.0.parse();
    let mut rules: Vec<Rule> = Vec::new();
    for (name, value) in &table {
        if name.as_ref() != "rule" {
            file.unknown(name.span().start, name.as_ref(), &["rule"]);
            continue;
        }
        let Some(list) = value.as_ref().as_array() else {
            file.bad_value(value, "rule", "written as [[rule]]");
            continue;
        };
        for item in list.iter() {
            let Some(rule) = file.rule(item) else {
                continue;
            };
            match rules.iter().find(|other| other.name.name == rule.name.name) {
                Some(other) => {
                    let unique = format!("unique in its file (see line {})", other.name.line);
                    let found = format!("{:?} again", rule.name.name);
                    file.0.bad_value(item.span().start, "name", &unique, found);
                }
                None => rules.push(rule),
            }
        }
    }
    file.0.tell(mistakes);
    rules
}

struct File<'a>(Notes<'a>);

impl File<'_> {
    fn rule(&mut self, item: &Spanned<DeValue<'_>>) -> Option<Rule> {
        let Some(table) = item.as_ref().as_table() else {
            self.bad_value(item, "rule", "written as [[rule]]");
            return None;
        };
        let before = self.0.len();
        for (name, _) in table {
            if !KEYS.contains(&name.as_ref().as_ref()) {
                self.unknown(name.span().start, name.as_ref(), KEYS);
            }
        }
        let at = item.span().start;
        let name = self.text(
            table,
            at,
            "name",
            "a short name, which is shown when the rule matches",
        );
        let class = self.text(
            table,
            at,
            "class",
            "a class of the settings, such as \"heavy\"",
        );
        if let Some(value) = table
            .get("class")
            .filter(|_| !class.is_empty() && !is_class_name(&class))
        {
            self.bad_value(
                value,
                "class",
                "lower-case letters, digits and `_`, at most 32 of them",
            );
        }
        let rule = Rule {
            class,
            reason: self.text(table, at, "reason", "why it is heavy, in a few words"),
            programs: self.patterns(table, "programs"),
            subcommands: self.subcommands(table),
            arguments: self.patterns(table, "arguments"),
            every: Vec::new(),
            unless: self.patterns(table, "unless"),
            light: self.patterns(table, "light"),
            values: self.patterns(table, "values"),
            bundled: self.flag(table, "bundled"),
            needs_operand: self.flag(table, "needs_operand"),
            name: RuleName {
                file: self.0.layer.origin.clone(),
                line: crate::source::line_of(&self.0.layer.text, at),
                name,
            },
        };
        if rule.programs.is_empty() && self.0.len() == before {
            self.missing(at, "programs", "a list of program names without folders");
        }
        (self.0.len() == before).then_some(rule)
    }

    fn text(&mut self, table: &DeTable<'_>, at: usize, key: &str, expected: &str) -> String {
        match table.get(key) {
            None => self.missing(at, key, expected),
            Some(value) => match value
                .as_ref()
                .as_str()
                .filter(|text| !text.trim().is_empty())
            {
                Some(text) => return text.to_owned(),
                None => self.bad_value(value, key, expected),
            },
        }
        String::new()
    }

    fn patterns(&mut self, table: &DeTable<'_>, key: &str) -> Vec<Pattern> {
        self.words(table, key)
            .iter()
            .map(|word| Pattern::new(word))
            .collect()
    }

    fn subcommands(&mut self, table: &DeTable<'_>) -> Vec<Vec<Pattern>> {
        let words = self.words(table, "subcommands");
        words
            .iter()
            .map(|line| line.split_whitespace().map(Pattern::new).collect())
            .collect()
    }

    fn words(&mut self, table: &DeTable<'_>, key: &str) -> Vec<String> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        match strings(value) {
            Err(wrong) => self.bad_value(wrong, key, LIST),
            Ok(list) => {
                if list.iter().all(|(word, _)| !word.trim().is_empty()) {
                    return list.iter().map(|(word, _)| (*word).to_owned()).collect();
                }
                self.bad_value(value, key, LIST);
            }
        }
        Vec::new()
    }

    fn flag(&mut self, table: &DeTable<'_>, key: &str) -> bool {
        let Some(value) = table.get(key) else {
            return false;
        };
        value.as_ref().as_bool().unwrap_or_else(|| {
            self.bad_value(value, key, "true or false");
            false
        })
    }

    fn missing(&mut self, at: usize, key: &str, expected: &str) {
        self.0.missing(at, "the rule".to_owned(), key, expected);
    }

    fn bad_value(&mut self, value: &Spanned<DeValue<'_>>, key: &str, expected: &str) {
        self.0
            .bad_value(value.span().start, key, expected, describe(value.as_ref()));
    }

    fn unknown(&mut self, offset: usize, key: &str, known: &[&str]) {
        self.0.unknown(offset, key.to_owned(), |key| {
            nearest(key, known.iter().copied())
        });
    }
}
