//! Known-heavy programs: rules as data, matched against arguments and never against a joined line.
//!
//! Programs are named in `config/rules.d/*.toml`; how a program is reached through others (`env`,
//! `npx`, `python -m`, `sh -c`) is code, in `unwrap`.

mod interpreters;
mod of_class;
mod pattern;
mod raw;
mod rule;
mod shell;
mod shipped;
mod unwrap;
mod wrappers;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use crate::settings::Settings;
use crate::source::{Errors, Layer, Mistake};
use rule::Rule;
pub use shipped::shipped_layers;
pub(crate) use unwrap::program_name;

/// How many programs are looked through, one inside the other, before giving up.
const MAX_DEPTH: usize = 8;

/// Which rule it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleName {
    /// Its file, as the layer names it.
    pub file: String,
    /// The line on which it starts; 0 for what has no lines, such as a variable.
    pub line: usize,
    /// Its name, unique in its file.
    pub name: String,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} ({})", self.file, self.name),
            line => write!(f, "{}:{line} ({})", self.file, self.name),
        }
    }
}

/// What a rule says of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The class that it belongs to.
    pub class: String,
    /// The rule.
    pub rule: RuleName,
    /// Why, in the rule's words.
    pub reason: String,
}

/// All rules, in the order of their files' names; the first that matches decides.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Rules by the program's exact name.
    by_program: HashMap<String, Vec<usize>>,
    /// Rules that name a program with a `*`.
    by_pattern: Vec<usize>,
}

impl RuleSet {
    /// Reads rule files. One with the file name of an earlier one replaces it, as systemd's drop-ins
    /// do; what is left is sorted by file name. An empty file takes a shipped one away.
    ///
    /// # Errors
    ///
    /// Every mistake of every file that counts.
    pub fn parse(layers: &[Layer]) -> Result<RuleSet, Errors> {
        let mut files: Vec<&Layer> = Vec::new();
        for layer in layers {
            files.retain(|earlier| earlier.file_name() != layer.file_name());
            files.push(layer);
        }
        files.sort_by_key(|layer| layer.file_name());
        let mut mistakes = Vec::new();
        let rules = files
            .iter()
            .flat_map(|layer| raw::read(layer, &mut mistakes))
            .collect();
        Errors::none_or(mistakes, || RuleSet::index(rules))
    }

    /// The rules of `config/rules.d`, built in.
    pub fn shipped() -> RuleSet {
        // A test parses them, so nothing is lost here.
        RuleSet::parse(&shipped_layers()).unwrap_or_default()
    }

    /// That each rule's class exists, and is one that detection may route into.
    ///
    /// # Errors
    ///
    /// Names each rule whose class is not in `settings`, or is `protected`: who is protected is the
    /// person's word, not a rule's.
    pub fn check(&self, settings: &Settings) -> Result<(), Errors> {
        let known = || {
            settings
                .classes
                .iter()
                .map(|class| class.name.as_str())
                .filter(|name| *name != "protected")
        };
        let wrong = self
            .rules
            .iter()
            .filter(|rule| !known().any(|name| name == rule.class));
        let mistakes = wrong.map(|rule| Mistake::BadValue {
            origin: format!("{}:{}", rule.name.file, rule.name.line),
            key: format!("{}.class", rule.name.name),
            expected: format!(
                "one of the classes {}",
                known().collect::<Vec<_>>().join(", ")
            ),
            found: format!("{:?}", rule.class),
        });
        Errors::none_or(mistakes.collect(), || ())
    }

    /// With the patterns of the classes in front: who names a command for one class means that before
    /// what is said of it in general.
    pub fn with_classes(self, settings: &Settings) -> RuleSet {
        let mut rules: Vec<Rule> = settings.classes.iter().flat_map(of_class::rules).collect();
        if rules.is_empty() {
            return self;
        }
        rules.extend(self.rules);
        RuleSet::index(rules)
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a command line is known to be heavy, by itself or through the programs that only start
    /// another one.
    pub fn matches(&self, argv: &[impl AsRef<str>]) -> Option<Match> {
        let argv: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        self.find(&argv, MAX_DEPTH).map(|rule| Match {
            class: rule.class.clone(),
            rule: rule.name.clone(),
            reason: rule.reason.clone(),
        })
    }

    fn find(&self, argv: &[&str], depth: usize) -> Option<&Rule> {
        let program = unwrap::program_name(argv.first()?);
        let args = &argv[1..];
        if let Some(rule) = self
            .candidates(program)
            .find(|rule| rule.matches(program, args))
        {
            return Some(rule);
        }
        let depth = depth.checked_sub(1)?;
        match unwrap::inner(program, args) {
            unwrap::Inner::None => None,
            unwrap::Inner::Command(command) => {
                let words: Vec<&str> = command.iter().map(AsRef::as_ref).collect();
                self.find(&words, depth)
            }
            unwrap::Inner::Script(script) => self.find_in_script(script, depth),
        }
    }

    /// The first command of a script that is more than preparation decides.
    fn find_in_script(&self, script: &str, depth: usize) -> Option<&Rule> {
        for command in shell::commands(script) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            if let Some(rule) = self.find(&words, depth) {
                return Some(rule);
            }
            if !shell::is_preparation(&words) {
                return None;
            }
        }
        None
    }

    fn candidates(&self, program: &str) -> impl Iterator<Item = &Rule> {
        // The two lists are merged in the order of the rules.
        let exact = self.by_program.get(program).map_or(&[][..], Vec::as_slice);
        let mut all: Vec<usize> = exact.iter().chain(&self.by_pattern).copied().collect();
        all.sort_unstable();
        all.into_iter().map(|at| &self.rules[at])
    }

    fn index(rules: Vec<Rule>) -> RuleSet {
        let mut set = RuleSet::default();
        for (at, rule) in rules.iter().enumerate() {
            for program in &rule.programs {
                match program.exact() {
                    Some(name) => set.by_program.entry(name.to_owned()).or_default().push(at),
                    None => set.by_pattern.push(at),
                }
            }
        }
        set.by_pattern.dedup();
        set.rules = rules;
        set
    }
}
