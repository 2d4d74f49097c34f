//! One rule, and how it reads arguments.

use super::RuleName;
use super::pattern::Pattern;

/// A rule, checked.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: RuleName,
    pub class: String,
    pub reason: String,
    /// Names without folders.
    pub programs: Vec<Pattern>,
    /// Words that the operands start with, any of these; none: any operands.
    pub subcommands: Vec<Vec<Pattern>>,
    /// At least one of these is among the arguments; none: any arguments.
    pub arguments: Vec<Pattern>,
    /// Each of these is among the arguments.
    pub every: Vec<Pattern>,
    /// None of these is among the options.
    pub unless: Vec<Pattern>,
    /// Operands that are light; when there are operands and all are light, the rule does not match.
    pub light: Vec<Pattern>,
    /// Options whose value is the next argument.
    pub values: Vec<Pattern>,
    /// `-nk` is `-n -k`.
    pub bundled: bool,
    /// The command must have at least one operand.
    pub needs_operand: bool,
}

impl Rule {
    /// Whether a program, whose name is one of the rule's, is heavy with these arguments.
    pub fn matches(&self, program: &str, args: &[&str]) -> bool {
        if !self.programs.iter().any(|pattern| pattern.matches(program)) {
            return false;
        }
        let (options, operands) = self.split(args);
        let excluded = |arg: &&str| {
            self.unless
                .iter()
                .any(|pattern| self.is_option(pattern, arg))
        };
        !options.iter().any(excluded)
            && (self.arguments.is_empty()
                || args.iter().any(|arg| {
                    self.arguments
                        .iter()
                        .any(|pattern| pattern.matches_argument(arg))
                }))
            && self
                .every
                .iter()
                .all(|pattern| args.iter().any(|arg| pattern.matches_argument(arg)))
            && (self.subcommands.is_empty()
                || self
                    .subcommands
                    .iter()
                    .any(|words| starts_with(&operands, words)))
            && (!self.needs_operand || !operands.is_empty())
            && (operands.is_empty()
                || !operands
                    .iter()
                    .all(|word| self.light.iter().any(|light| light.matches(word))))
    }

    /// Options, and operands, in their order. After `--` come words for another program, which say
    /// nothing about this one, except that they are operands.
    fn split<'a>(&self, args: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
        let (mut options, mut operands) = (Vec::new(), Vec::new());
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if *arg == "--" {
                operands.extend(rest);
                break;
            } else if arg.len() > 1 && arg.starts_with('-') {
                options.push(*arg);
                if self.values.iter().any(|option| option.matches(arg)) {
                    rest.next();
                }
            } else {
                operands.push(*arg);
            }
        }
        (options, operands)
    }

    /// Whether an argument is, or with bundling holds, an option.
    fn is_option(&self, pattern: &Pattern, arg: &str) -> bool {
        if pattern.matches_argument(arg) {
            return true;
        }
        let Some(letter) = pattern.short_option().filter(|_| self.bundled) else {
            return false;
        };
        let bundle = arg
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with('-'))
            .unwrap_or_default();
        // What follows an option with a value is that value.
        let takes_value = |c: &char| {
            self.values
                .iter()
                .any(|option| option.short_option() == Some(*c))
        };
        bundle.chars().find(|c| *c == letter || takes_value(c)) == Some(letter)
    }
}

fn starts_with(operands: &[&str], words: &[Pattern]) -> bool {
    operands.len() >= words.len()
        && words
            .iter()
            .zip(operands)
            .all(|(pattern, word)| pattern.matches(word))
}
