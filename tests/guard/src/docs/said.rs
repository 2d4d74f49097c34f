//! Whether a command said what a page has. Numbers differ from machine to machine and from run to run, and so does the
//! width of columns; `[..]` stands for the rest of a line or a part of it, `...` for any lines.

use anyhow::{Result, bail};
use snapbox::Data;
use snapbox::filter::NormalizeToExpected;

/// Fails where they differ, and shows both.
pub fn compare(page: &str, said: &str) -> Result<()> {
    let (expected, actual) = (tidy(page), tidy(said));
    let matched = NormalizeToExpected::new()
        .redact()
        .normalize(Data::text(&actual), &Data::text(&expected));
    if matched.render().as_deref() == Some(&expected) {
        return Ok(());
    }
    bail!(
        "the page has\n{page}\nbut it said\n{said}\ncompared, with N for each number, were\n{expected}\nand\n{actual}"
    )
}

/// Every number as N, columns apart by one blank, no blank lines at the end.
fn tidy(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        let words: Vec<String> = line.split_whitespace().map(without_numbers).collect();
        out.push_str(&words.join(" "));
        out.push('\n');
    }
    out
}

/// `1.5s` and `12s` are alike; so are `0.4` and `3`.
fn without_numbers(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        out.push('N');
        let number = &rest[at..];
        let end = number
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(number.len());
        let fraction = number[end..].strip_prefix('.').map_or(0, |digits| {
            let length = digits
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(digits.len());
            if length == 0 { 0 } else { length + 1 }
        });
        rest = &number[end + fraction..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_widths_and_elisions_do_not_count() {
        for (page, said) in [
            ("PID 4242  heavy\n", "PID    17 heavy\n\n"),
            ("took 1.5 s\n", "took 12 s\n"),
            ("a\n...\nz\n", "a\nb\nc\nz\n"),
            (
                "lwg-heavy-1-2.scope in [..]\n",
                "lwg-heavy-33-4.scope in /x/y\n",
            ),
            ("", "\n"),
        ] {
            compare(page, said).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn words_count() {
        for (page, said) in [
            ("heavy\n", "protected\n"),
            ("a\n", "a\nb\n"),
            ("a\nb\n", "a\n"),
            ("normal [..]\n", "degraded: x\n"),
            ("", "an error\n"),
        ] {
            assert!(compare(page, said).is_err(), "{page:?} {said:?}");
        }
    }
}
