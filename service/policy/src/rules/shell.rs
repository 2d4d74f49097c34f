//! The commands of a `sh -c` script, split as far as telling what it runs needs. No expansion: a word
//! with a `$` stays as it is and matches no rule.

/// A script is looked through this far, in commands and in bytes: hostile ones are long.
const MAX_COMMANDS: usize = 16;
const MAX_BYTES: usize = 8192;

/// Words that stand before a command and are none.
const KEYWORDS: &[&str] = &[
    "!", "{", "if", "then", "elif", "else", "while", "until", "do", "exec", "command", "time",
];

/// Commands that only prepare: after one of them the next one tells what the script is for.
const PREPARATIONS: &[&str] = &[
    ".", ":", "[", "[[", "alias", "cd", "declare", "echo", "eval", "export", "false", "hash",
    "local", "mkdir", "popd", "printf", "pushd", "pwd", "read", "readonly", "set", "shift",
    "shopt", "sleep", "source", "test", "trap", "true", "type", "typeset", "ulimit", "umask",
    "unalias", "unset",
];

/// Whether a command only prepares the next one.
pub fn is_preparation(words: &[&str]) -> bool {
    words
        .first()
        .is_none_or(|program| PREPARATIONS.contains(program))
}

/// The commands in their order, without assignments, keywords and redirections before and in them.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let mut end = script.len().min(MAX_BYTES);
    while !script.is_char_boundary(end) {
        end -= 1;
    }
    // A line that goes on is one line. (Not so inside single quotes, where it makes no difference here.)
    let script = script[..end].replace("\\\n", "");
    let mut lexer = Lexer {
        rest: script.chars().peekable(),
    };
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut skip_next = false;
    while commands.len() < MAX_COMMANDS {
        match lexer.next() {
            Token::Word(_) if skip_next => skip_next = false,
            Token::Word(word) => {
                let leading =
                    words.is_empty() && (KEYWORDS.contains(&word.as_str()) || is_assignment(&word));
                if !leading {
                    words.push(word);
                }
            }
            Token::Redirection => skip_next = true,
            Token::Separator => {
                skip_next = false;
                if !words.is_empty() {
                    commands.push(std::mem::take(&mut words));
                }
            }
            // `name()` defines a function: that is no command.
            Token::Open => words.clear(),
            Token::End => {
                if !words.is_empty() {
                    commands.push(words);
                }
                break;
            }
        }
    }
    commands
}

/// `NAME=value` before a command.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

enum Token {
    Word(String),
    /// `;`, `&`, `|`, `)`, or the end of a line.
    Separator,
    /// `(`.
    Open,
    /// `>` and the like; the next word is a file.
    Redirection,
    /// The end, or something beyond which nothing can be said.
    End,
}

struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Lexer<'_> {
    fn next(&mut self) -> Token {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.rest.peek().copied() {
            None => Token::End,
            Some('#') => {
                while self.rest.next_if(|c| *c != '\n').is_some() {}
                Token::Separator
            }
            Some(';' | '|' | '\n' | ')') => {
                self.rest.next();
                Token::Separator
            }
            Some('(') => {
                self.rest.next();
                Token::Open
            }
            Some('&') => {
                self.rest.next();
                match self.rest.next_if_eq(&'>') {
                    Some(_) => self.redirection('>'),
                    None => Token::Separator,
                }
            }
            Some(c @ ('<' | '>')) => {
                self.rest.next();
                self.redirection(c)
            }
            Some(_) => self.word(),
        }
    }

    /// After its first character. A here-document ends what can be told.
    fn redirection(&mut self, first: char) -> Token {
        if self.rest.next_if_eq(&first).is_some() && first == '<' {
            return Token::End;
        }
        self.rest.next_if(|c| matches!(c, '&' | '|' | '>'));
        Token::Redirection
    }

    fn word(&mut self) -> Token {
        let mut word = String::new();
        while let Some(c) = self.rest.peek().copied() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' => break,
                '<' | '>' => {
                    // `2>file`: the number belongs to the redirection.
                    if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
                        self.rest.next();
                        return self.redirection(c);
                    }
                    break;
                }
                _ => self.piece(&mut word),
            }
        }
        Token::Word(word)
    }

    /// One character, quotation or substitution.
    fn piece(&mut self, word: &mut String) {
        let Some(c) = self.rest.next() else {
            return;
        };
        match c {
            '\'' => word.extend(self.rest.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                while let Some(c) = self.rest.next().filter(|c| *c != '"') {
                    word.push(if c == '\\' {
                        self.rest.next().unwrap_or(c)
                    } else {
                        c
                    });
                }
            }
            '\\' => word.extend(self.rest.next()),
            '`' => {
                word.push_str("$()");
                while self.rest.next().is_some_and(|c| c != '`') {}
            }
            '$' if self.rest.peek() == Some(&'(') => {
                word.push_str("$()");
                let mut depth = 0_usize;
                for c in self.rest.by_ref() {
                    match c {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(script: &str) -> Vec<String> {
        commands(script)
            .iter()
            .map(|words| words.join(" "))
            .collect()
    }

    #[test]
    fn scripts_are_split_into_commands() {
        for (script, expected) in [
            ("cargo build", &["cargo build"][..]),
            ("cd x && make -j8", &["cd x", "make -j8"]),
            ("A=b C='d e' make;ls", &["make", "ls"]),
            ("exec make 2>&1 >log | tee x", &["make", "tee x"]),
            ("make>log all", &["make all"]),
            ("make &>log; x", &["make", "x"]),
            ("echo 'make; all' \"a \\\" b\"", &["echo make; all a \" b"]),
            ("make -j$(nproc) all", &["make -j$() all"]),
            ("make -j`nproc`", &["make -j$()"]),
            ("(cd x; make)", &["cd x", "make"]),
            ("if true; then make; fi", &["true", "make", "fi"]),
            ("make() { ls; }", &["ls", "}"]),
            ("# make\nls", &["ls"]),
            ("cat <<EOF\nmake\nEOF", &["cat"]),
            ("a\\ b c", &["a b c"]),
            ("make \\\n  all", &["make all"]),
            ("'unclosed", &["unclosed"]),
            ("", &[]),
        ] {
            assert_eq!(lines(script), expected, "{script}");
        }
    }

    #[test]
    fn a_huge_script_is_cut() {
        assert_eq!(commands(&"make;".repeat(100_000)).len(), MAX_COMMANDS);
        assert!(lines(&"ä".repeat(10_000))[0].len() <= MAX_BYTES);
    }
}
