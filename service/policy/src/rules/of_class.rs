//! Patterns of a class in the settings, as rules.

use super::RuleName;
use super::pattern::Pattern;
use super::rule::Rule;
use crate::class::Class;

/// One rule a pattern: the first word is the program's name without folders, each further one is somewhere
/// among the arguments.
pub fn rules(class: &Class) -> impl Iterator<Item = Rule> {
    let (file, line) = match class.patterns_origin.rsplit_once(':') {
        Some((file, line)) if line.parse::<usize>().is_ok() => {
            (file, line.parse().unwrap_or_default())
        }
        _ => (class.patterns_origin.as_str(), 0),
    };
    class.patterns.iter().filter_map(move |text| {
        let mut words = text.split_whitespace().map(Pattern::new);
        Some(Rule {
            name: RuleName {
                file: file.to_owned(),
                line,
                name: format!("classes.{}.patterns", class.name),
            },
            class: class.name.clone(),
            reason: format!("`{text}` is a pattern of class {}", class.name),
            programs: vec![words.next()?],
            every: words.collect(),
            subcommands: Vec::new(),
            arguments: Vec::new(),
            unless: Vec::new(),
            light: Vec::new(),
            values: Vec::new(),
            bundled: false,
            needs_operand: false,
        })
    })
}
