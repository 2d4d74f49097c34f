//! Writes man(7).

use super::DATE;

/// Columns of a source's line, as mandoc wants it.
const WIDTH: usize = 78;

/// A page that grows.
pub struct Page(String);

impl Page {
    /// Its head: `name` in `section`, and what it is in a line.
    pub fn new(name: &str, section: u8, summary: &str) -> Page {
        let mut page = Page(String::new());
        let title = name.to_uppercase();
        page.raw(&format!(
            ".TH \"{}\" \"{section}\" \"{DATE}\" \"workload\\-guard {}\" \"Linux Workload Guard\"",
            escape(&title),
            env!("CARGO_PKG_VERSION"),
        ));
        page.section("NAME");
        page.filled(&format!("{name} - {summary}"));
        page
    }

    /// The page.
    pub fn done(self) -> String {
        self.0
    }

    /// A section's head.
    pub fn section(&mut self, name: &str) {
        self.raw(&format!(".SH \"{}\"", escape(name)));
    }

    /// Likewise below it.
    pub fn subsection(&mut self, name: &str) {
        self.raw(&format!(".SS \"{}\"", escape(name)));
    }

    /// Paragraphs: the first right here, each further one, after an empty line, apart. Lines that are indented are
    /// shown as they are.
    pub fn text(&mut self, text: &str) {
        for (at, block) in text.trim_end().split("\n\n").enumerate() {
            if at > 0 {
                self.raw(".PP");
            }
            self.block(block);
        }
    }

    /// What hangs below a term.
    pub fn item(&mut self, term: &str, text: &str) {
        self.raw(".TP");
        self.raw(&format!("\\fB{}\\fR", escape(term)));
        for (at, block) in text.trim_end().split("\n\n").enumerate() {
            if at > 0 {
                self.raw(".IP");
            }
            self.block(block);
        }
    }

    /// Text as it is, without filling.
    pub fn verbatim(&mut self, text: &str) {
        self.raw(".nf");
        for line in text.trim_end().lines() {
            self.line(line);
        }
        self.raw(".fi");
    }

    fn block(&mut self, block: &str) {
        match block.lines().any(|line| line.starts_with(' ')) {
            true => self.verbatim(block),
            false => self.filled(block),
        }
    }

    /// Words that are filled into lines, which a source has short.
    fn filled(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            let word = escape(word);
            if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
                self.raw(&std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
                // Only the first word of a line has to be kept from being a request.
                line.push_str(word.strip_prefix("\\&").unwrap_or(&word));
            } else {
                line = word;
            }
        }
        if !line.is_empty() {
            self.raw(&line);
        }
    }

    fn line(&mut self, line: &str) {
        let line = escape(line.trim_end());
        // An empty line would be a paragraph of its own.
        match line.is_empty() {
            true => self.raw(".sp"),
            false => self.raw(&line),
        }
    }

    fn raw(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// Text that troff prints as it is (groff_char(7)): a backslash, a dash or a quote means itself, and a dot or quote
/// that begins a line is no request.
fn escape(line: &str) -> String {
    let mut out = String::new();
    if line.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    for c in line.chars() {
        match c {
            '\\' => out.push_str("\\(rs"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '"' => out.push_str("\\(dq"),
            c if c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\[u{:04X}]", c as u32)),
        }
    }
    out
}

/// What a reader sees of a page, in one line: for tests of what it says.
#[cfg(test)]
pub fn seen(page: &str) -> String {
    let mut out = String::new();
    for line in page.lines() {
        let text = match line.split_once(' ') {
            Some((".SH" | ".SS", text)) => text.trim_matches('"'),
            _ if line.starts_with('.') => continue,
            _ => line,
        };
        out.push_str(text);
        out.push('\n');
    }
    for (code, text) in [
        ("\\&", ""),
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(ga", "`"),
        ("\\(ha", "^"),
        ("\\(ti", "~"),
        ("\\(dq", "\""),
        ("\\[u2026]", "…"),
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\(rs", "\\"),
    ] {
        out = out.replace(code, text);
    }
    words(&out)
}

/// The words of a text with one blank in between.
#[cfg(test)]
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_a_troff_request() {
        assert_eq!(escape(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escape("a\\fBb-c"), "a\\(rsfBb\\-c");
        assert_eq!(escape("…"), "\\[u2026]");
    }

    #[test]
    fn what_is_written_is_what_is_seen() {
        let mut page = Page::new("a-b", 1, "does it");
        page.section("DESCRIPTION");
        page.text("It's `so`.\n\nA list:\n  one\n  .two");
        page.item("--for TIME", "Until then.");
        let page = page.done();
        assert_eq!(
            seen(&page),
            "NAME a-b - does it DESCRIPTION It's `so`. A list: one .two --for TIME Until then."
        );
    }
}
