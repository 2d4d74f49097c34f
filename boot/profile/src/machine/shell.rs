//! The assignments of a shell file, read as data: quotes, arrays and comments, but nothing that a shell
//! would have to compute.

use std::iter::Peekable;
use std::str::CharIndices;

/// The right side of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `KEY=…`, `KEY="…"`.
    Text(String),
    /// `KEY=( … )`.
    List(Vec<String>),
}

/// Line, name and value; or the line and what cannot be read there.
pub type Assignment = Result<(usize, String, Value), (usize, String)>;

/// All assignments of `text`, in order.
pub fn assignments(text: &str) -> Vec<Assignment> {
    let mut scanner = Scanner {
        text,
        chars: text.char_indices().peekable(),
        line: 1,
    };
    let mut found = Vec::new();
    while scanner.reach_statement() {
        let line = scanner.line;
        match scanner.assignment() {
            Ok((name, value)) => found.push(Ok((line, name, value))),
            Err(reason) => {
                found.push(Err((line, reason)));
                scanner.rest_of_line();
            }
        }
    }
    found
}

struct Scanner<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    line: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn next(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn rest_of_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    /// Over blanks, comments and `;`; false at the end of the text.
    fn reach_statement(&mut self) -> bool {
        loop {
            match self.peek() {
                None => return false,
                Some('#') => self.rest_of_line(),
                Some(c) if c.is_whitespace() || c == ';' => {
                    self.next();
                }
                Some(_) => return true,
            }
        }
    }

    fn assignment(&mut self) -> Result<(String, Value), String> {
        let mut name = self.name();
        // `export KEY=…` and its like say nothing about the value.
        while ["export", "readonly"].contains(&name.as_str()) && self.peek() == Some(' ') {
            while self.peek() == Some(' ') {
                self.next();
            }
            name = self.name();
        }
        if name.is_empty() || self.peek() != Some('=') {
            return Err(
                "this is no assignment KEY=value; nothing of the file is run, so write values only"
                    .to_owned(),
            );
        }
        self.next();
        let value = if self.peek() == Some('(') {
            self.next();
            self.list()?
        } else {
            Value::Text(self.word()?)
        };
        match self.peek() {
            None => {}
            Some(c) if c.is_whitespace() || c == ';' || c == '#' => {}
            Some(c) => return Err(format!("{c:?} after the value of {name}")),
        }
        Ok((name, value))
    }

    fn name(&mut self) -> String {
        let start = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.next();
        }
        let end = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        self.text[start..end].to_owned()
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut words = Vec::new();
        loop {
            match self.peek() {
                None => return Err("an array that does not end: `)` is missing".to_owned()),
                Some(')') => {
                    self.next();
                    return Ok(Value::List(words));
                }
                Some('#') => self.rest_of_line(),
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some(_) => words.push(self.word()?),
            }
        }
    }

    /// One word with its quotes taken off.
    fn word(&mut self) -> Result<String, String> {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    self.next();
                    self.escaped(&mut word, |_| true);
                }
                '$' | '`' => return Err(computed(c)),
                '(' | '&' | '|' | '<' | '>' => {
                    return Err(format!("{c:?} has no meaning in a value"));
                }
                c if c.is_whitespace() || c == ';' || c == ')' => break,
                c => {
                    word.push(c);
                    self.next();
                }
            }
        }
        Ok(word)
    }

    fn single_quoted(&mut self, word: &mut String) -> Result<(), String> {
        self.next();
        loop {
            match self.next() {
                None => return Err("a quote ' that does not end".to_owned()),
                Some('\'') => return Ok(()),
                Some(c) => word.push(c),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut String) -> Result<(), String> {
        self.next();
        loop {
            match self.next() {
                None => return Err("a quote \" that does not end".to_owned()),
                Some('"') => return Ok(()),
                Some(c @ ('$' | '`')) => return Err(computed(c)),
                Some('\\') => self.escaped(word, |c| ['"', '\\', '$', '`', '\n'].contains(&c)),
                Some(c) => word.push(c),
            }
        }
    }

    /// What follows a backslash: itself, nothing for a line break, and with the backslash where the
    /// quotes do not let it escape that.
    fn escaped(&mut self, word: &mut String, escapes: impl Fn(char) -> bool) {
        match self.next() {
            Some('\n') => {}
            Some(c) if escapes(c) => word.push(c),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }
}

fn computed(c: char) -> String {
    format!(
        "a shell would compute a value at {c:?}; nothing of the file is run, so write the value out"
    )
}
