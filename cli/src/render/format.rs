//! `status --format`: one line with what a status bar shows.

use crate::call::Status;

/// A line with gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Format(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Field(Field),
    OfClass(OfClass, String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    State,
    Reasons,
    Workloads,
    Cpu,
    Watched,
    Holds,
    Routed,
    Recovered,
    Failed,
    Version,
}

/// What there is of each class.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OfClass {
    Workloads,
    Cpu,
    Quota,
}

const FIELDS: &[(&str, Field)] = &[
    ("state", Field::State),
    ("reasons", Field::Reasons),
    ("workloads", Field::Workloads),
    ("cpu", Field::Cpu),
    ("watched", Field::Watched),
    ("holds", Field::Holds),
    ("routed", Field::Routed),
    ("recovered", Field::Recovered),
    ("failed", Field::Failed),
    ("version", Field::Version),
];

const OF_CLASS: &[(&str, OfClass)] = &[
    ("workloads", OfClass::Workloads),
    ("cpu", OfClass::Cpu),
    ("quota", OfClass::Quota),
];

impl Format {
    /// Reads what was typed.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.next_if_eq(&c).is_some() => plain.push(c),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match rest.next() {
                            Some('}') => break,
                            Some(c) => name.push(c),
                            None => {
                                return Err(format!(
                                    "`{{{name}` has no `}}`; a brace of its own is `{{{{`"
                                ));
                            }
                        }
                    }
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(field(&name)?);
                }
                '}' => return Err("a `}` without a `{`; a brace of its own is `}}`".into()),
                c => plain.push(c),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Format(pieces))
    }

    /// The line, with its newline.
    pub fn line(&self, status: &Status) -> Result<String, String> {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Field(field) => line.push_str(&value(*field, status)),
                Piece::OfClass(what, class) => line.push_str(&of_class(*what, class, status)?),
            }
        }
        // One line, whatever a reason says.
        let mut line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        line.push('\n');
        Ok(line)
    }
}

fn field(name: &str) -> Result<Piece, String> {
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
        return Ok(Piece::Field(*field));
    }
    if let Some((what, class)) = name.split_once('.')
        && let Some((_, what)) = OF_CLASS.iter().find(|(known, _)| *known == what)
        && !class.is_empty()
    {
        return Ok(Piece::OfClass(*what, class.to_owned()));
    }
    let known: Vec<String> = FIELDS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain(OF_CLASS.iter().map(|(name, _)| format!("{name}.CLASS")))
        .collect();
    Err(format!("there is no field {name:?}: {}", known.join(", ")))
}

fn value(field: Field, status: &Status) -> String {
    match field {
        Field::State => status.state.clone(),
        Field::Reasons => status.state_reasons.join("; "),
        Field::Workloads => status.workloads.len().to_string(),
        Field::Cpu => percent(status.workloads.iter().map(|row| row.cpu)),
        Field::Watched => {
            let processes = status.watched.iter().map(|row| u64::from(row.processes));
            processes.sum::<u64>().to_string()
        }
        Field::Holds => status.holds.len().to_string(),
        Field::Routed => status.routed.to_string(),
        Field::Recovered => status.recovered.to_string(),
        Field::Failed => status.failed.to_string(),
        Field::Version => status.version.clone(),
    }
}

fn of_class(what: OfClass, class: &str, status: &Status) -> Result<String, String> {
    let Some(row) = status.classes.iter().find(|row| row.name == class) else {
        let names: Vec<_> = status.classes.iter().map(|row| row.name.as_str()).collect();
        return Err(format!("there is no class {class:?}: {}", names.join(", ")));
    };
    let mut workloads = status.workloads.iter().filter(|row| row.class == class);
    Ok(match what {
        OfClass::Workloads => workloads.count().to_string(),
        OfClass::Cpu => percent(workloads.by_ref().map(|row| row.cpu)),
        OfClass::Quota if row.quota == 0 => "none".into(),
        OfClass::Quota => row.quota.to_string(),
    })
}

fn percent(parts: impl Iterator<Item = f64>) -> String {
    // An empty sum is -0.
    format!("{:.0}", parts.sum::<f64>().abs())
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::busy;
    use super::*;

    fn line(text: &str) -> String {
        Format::parse(text).unwrap().line(&busy()).unwrap()
    }

    #[test]
    fn each_field_is_filled_in_and_documented() {
        let help = crate::args::status_help();
        for (name, _) in FIELDS {
            assert!(help.contains(&format!("{{{name}}}")), "{name}");
            assert!(!line(&format!("{{{name}}}")).contains('{'), "{name}");
        }
        for (name, _) in OF_CLASS {
            assert!(help.contains(&format!("{{{name}.CLASS}}")), "{name}");
        }
    }

    #[test]
    fn a_line_for_a_bar() {
        let status = busy();
        let heavy = status.workloads.iter().filter(|row| row.class == "heavy");
        assert_eq!(
            line("{{{state}}} {workloads.heavy}/{workloads}"),
            format!(
                "{{{}}} {}/{}\n",
                status.state,
                heavy.count(),
                status.workloads.len()
            )
        );
        assert_eq!(line("{quota.heavy}%"), "400%\n");
    }

    #[test]
    fn a_mistake_names_what_there_is() {
        let error = |text| Format::parse(text).unwrap_err();
        assert!(error("{stat}").contains("\"stat\": state, reasons"));
        assert!(error("{class.heavy}").contains("workloads.CLASS"));
        assert!(error("{workloads.}").contains("workloads.CLASS"));
        assert!(error("{state").contains("no `}`"));
        assert!(error("a } b").contains("without"));
        let no_class = Format::parse("{cpu.frob}").unwrap().line(&busy());
        assert!(no_class.unwrap_err().contains("heavy"));
    }

    #[test]
    fn a_line_break_in_a_reason_is_no_second_line() {
        let mut status = busy();
        status.state_reasons = vec!["a\nb".into()];
        let line = Format::parse("{reasons}").unwrap().line(&status).unwrap();
        assert_eq!(line, "a b\n");
    }
}
