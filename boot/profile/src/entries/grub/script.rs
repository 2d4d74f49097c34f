//! As much of GRUB's script as tells where an entry begins and ends, and which kernel it starts.

use super::EntryError;

/// An entry.
#[derive(Clone, Debug)]
pub struct Menuentry<'t> {
    /// Its title, without quotes.
    pub title: String,
    /// Its id, without quotes.
    pub id: Option<String>,
    /// Its other flags, as they stand.
    flags: Vec<&'t str>,
    /// The lines between its braces.
    body: Vec<&'t str>,
}

impl<'t> Menuentry<'t> {
    /// Its flags but the id, each with a blank before it.
    pub fn flags(&self) -> String {
        self.flags.iter().map(|flag| format!(" {flag}")).collect()
    }

    /// The kernel's path, as it stands.
    pub fn kernel_path(&self) -> Option<&'t str> {
        self.body
            .iter()
            .find_map(|line| linux(line))
            .map(|(_, path, _)| path)
    }

    /// The kernel's command line, as it stands.
    pub fn command_line(&self) -> Option<&'t str> {
        self.body
            .iter()
            .find_map(|line| linux(line))
            .map(|(_, _, line)| line)
    }

    /// The body with another command line, and without what makes the entry the default.
    pub fn body_with(&self, command_line: &str) -> impl Iterator<Item = String> {
        self.body
            .iter()
            .filter(|line| line.trim() != "savedefault")
            .map(move |line| match linux(line) {
                Some((head, path, _)) => format!("\t{head}{path} {command_line}\n"),
                None => format!("\t{line}\n"),
            })
    }
}

/// Each entry, also of submenus.
pub fn menuentries(text: &str) -> Result<Vec<Menuentry<'_>>, EntryError> {
    let mut entries = Vec::new();
    let mut scanner = Scanner {
        text,
        at: 0,
        line: 1,
    };
    let mut first = true;
    while let Some(token) = scanner.next()? {
        match token {
            Token::Word(word) => {
                if first && word == "menuentry" {
                    entries.extend(scanner.menuentry()?);
                    first = true;
                    continue;
                }
                // A command may follow these.
                first = first && ["then", "else", "do"].contains(&word);
            }
            Token::Brace(_) | Token::End => first = true,
        }
    }
    Ok(entries)
}

/// Everything up to a kernel's path with the blanks behind the command, the path, and the command line.
fn linux(line: &str) -> Option<(&str, &str, &str)> {
    let command = line.trim_start();
    let rest = ["linux", "linuxefi", "linux16"]
        .iter()
        .find_map(|name| command.strip_prefix(name)?.strip_prefix([' ', '\t']))?;
    let rest = rest.trim_start();
    if !is_one_command(rest) {
        return None;
    }
    let path_at = line.len() - rest.len();
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    Some((&line[..path_at], &rest[..end], rest[end..].trim()))
}

/// Whether a line holds one whole command, so that words can be added to its end.
fn is_one_command(line: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') if chars.next().is_none() => return false,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ';' | '&' | '|') => return false,
            (None, '#') if [' ', '\t'].contains(&before) => return false,
            _ => {}
        }
        before = c;
    }
    quote.is_none()
}

enum Token<'t> {
    Word(&'t str),
    Brace(char),
    End,
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn malformed<T>(&self, reason: &str) -> Result<T, EntryError> {
        Err(EntryError::Malformed {
            line: self.line,
            reason: reason.to_owned(),
        })
    }

    /// A word, a brace, or the end of a command.
    fn next(&mut self) -> Result<Option<Token<'t>>, EntryError> {
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else {
                return Ok(None);
            };
            match c {
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if rest[1..].starts_with('\n') => {
                    self.at += 2;
                    self.line += 1;
                }
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '\n' => {
                    self.at += 1;
                    self.line += 1;
                    return Ok(Some(Token::End));
                }
                ';' | '&' | '|' => {
                    self.at += 1;
                    return Ok(Some(Token::End));
                }
                _ => break,
            }
        }
        let word = self.word()?;
        Ok(Some(match word {
            "{" => Token::Brace('{'),
            "}" => Token::Brace('}'),
            word => Token::Word(word),
        }))
    }

    fn word(&mut self) -> Result<&'t str, EntryError> {
        let rest = self.rest();
        let begun = self.line;
        let mut quote = None;
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match (quote, c) {
                (None, ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|') => {
                    self.at += at;
                    return Ok(&rest[..at]);
                }
                (None | Some('"'), '\\') => {
                    if let Some((_, kept)) = chars.next() {
                        self.line += usize::from(kept == '\n');
                    }
                }
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (Some(_), '\n') => self.line += 1,
                _ => {}
            }
        }
        if quote.is_some() {
            self.line = begun;
            return self.malformed("a quote is not closed: GRUB would not take this file");
        }
        self.at = self.text.len();
        Ok(rest)
    }

    /// What follows `menuentry`: title, flags, body. None where it is a command of another kind.
    fn menuentry(&mut self) -> Result<Option<Menuentry<'t>>, EntryError> {
        let mut words = Vec::new();
        loop {
            match self.next()? {
                Some(Token::Word(word)) => words.push(word),
                Some(Token::Brace('{')) => break,
                _ => {
                    return self
                        .malformed("a menuentry has no body: GRUB would not take this file");
                }
            }
        }
        let body = self.body()?;
        let mut words = words.into_iter();
        let Some(title) = words.next() else {
            return Ok(None);
        };
        let mut entry = Menuentry {
            title: unquoted(title),
            id: None,
            flags: Vec::new(),
            body,
        };
        while let Some(word) = words.next() {
            match word {
                // `--id ID`, as 00_header has it.
                "$menuentry_id_option" | "${menuentry_id_option}" | "--id" => {
                    entry.id = words.next().map(unquoted);
                }
                "--hotkey" => {
                    words.next();
                }
                word if word.starts_with("--id=") => entry.id = Some(unquoted(&word[5..])),
                word if word.starts_with("--hotkey=") => {}
                word => entry.flags.push(word),
            }
        }
        Ok(Some(entry))
    }

    /// The lines up to the brace that closes the body.
    fn body(&mut self) -> Result<Vec<&'t str>, EntryError> {
        let begun = self.line;
        let from = self.at;
        let mut depth = 1;
        loop {
            let before = self.at;
            match self.next()? {
                Some(Token::Brace('{')) => depth += 1,
                Some(Token::Brace(_)) => {
                    depth -= 1;
                    if depth == 0 {
                        let to = before + self.text[before..self.at].rfind('}').unwrap_or(0);
                        let lines = self.text[from..to].lines();
                        return Ok(lines.filter(|line| !line.trim().is_empty()).collect());
                    }
                }
                Some(_) => {}
                None => {
                    self.line = begun;
                    return self
                        .malformed("a menuentry is not closed: GRUB would not take this file");
                }
            }
        }
    }
}

/// A word without its quotes.
fn unquoted(word: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => plain.extend(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => plain.push(c),
        }
    }
    plain
}

/// A text as one word of GRUB's script.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
