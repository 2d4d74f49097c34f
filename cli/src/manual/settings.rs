//! The pages of the settings files, from the commented files that are shipped.

use super::troff::Page;

/// A file with a page.
pub struct File {
    /// Its name.
    pub name: &'static str,
    summary: &'static str,
    text: &'static str,
    others: &'static str,
}

/// The files.
pub const FILES: &[File] = &[
    File {
        name: "guard.toml",
        summary: "settings of Linux Workload Guard",
        text: include_str!("../../../config/guard.toml"),
        others: "workload-guard(1), workload-guard-config(1), workload-guardd(8), systemd.resource-control(5)",
    },
    File {
        name: "machine.toml",
        summary: "the machine that the bench profiles prepare",
        text: include_str!("../../../config/machine.toml"),
        others: "workload-guard-bench(1), workload-guard-bench-plan(1), workload-guard-bench-config(1), \
                 org.workloadguard.BenchPrep1(5)",
    },
];

/// The page of a file.
pub fn page(file: &File) -> String {
    let mut page = Page::new(file.name, 5, file.summary);
    page.section("DESCRIPTION");
    let mut below = false;
    for (at, block) in blocks(file.text).into_iter().enumerate() {
        if let Some(table) = block.table {
            if !below {
                page.section("KEYS");
                below = true;
            }
            page.subsection(table);
        } else if at > 0 && block.lines.is_empty() {
            page.text("");
        }
        let comment = block.comment.join("\n");
        match block.lines.as_slice() {
            [] if !comment.is_empty() => page.text(&comment),
            [] => {}
            lines => page.item(&lines.join(" "), &comment),
        }
    }
    page.section("EXAMPLE");
    page.verbatim(file.text);
    page.section("SEE ALSO");
    page.text(file.others);
    page.done()
}

/// A comment, with the table or the key that it stands above.
#[derive(Debug, Default, PartialEq)]
struct Block<'a> {
    table: Option<&'a str>,
    comment: Vec<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut block = Block::default();
    // An array over several lines is one value.
    let mut open = false;
    for line in text.lines() {
        if open {
            open = line.trim() != "]";
            continue;
        }
        let key = line
            .strip_prefix('#')
            .filter(|rest| !rest.starts_with(' '))
            .unwrap_or(line);
        if let Some(comment) = line
            .strip_prefix("# ")
            .or(line.strip_prefix('#').filter(|rest| rest.is_empty()))
        {
            // After a key a new comment is of the next one.
            if !block.lines.is_empty() {
                blocks.push(std::mem::take(&mut block));
            }
            block.comment.push(comment);
        } else if line.is_empty() {
            blocks.push(std::mem::take(&mut block));
        } else if key.starts_with('[') {
            if !block.lines.is_empty() || block.table.is_some() {
                blocks.push(std::mem::take(&mut block));
            }
            block.table = Some(key);
            // A comment above a table is about all of it.
            blocks.push(std::mem::take(&mut block));
        } else {
            open = key.ends_with('[');
            block.lines.push(key.trim_end_matches(['[', ' ']));
        }
    }
    blocks.push(block);
    blocks.retain(|block| *block != Block::default());
    blocks
}

#[cfg(test)]
mod tests {
    use super::super::troff::{seen, words};
    use super::*;

    #[test]
    fn every_comment_and_every_key_of_a_file_is_on_its_page() {
        for file in FILES {
            let page = page(file);
            let before = page.split(".SH \"EXAMPLE\"").next().unwrap();
            let seen = seen(before);
            for block in blocks(file.text) {
                let comment = words(&block.comment.join("\n"));
                assert!(seen.contains(&comment), "{}: {comment}\n{seen}", file.name);
                for line in block.lines.iter().chain(&block.table) {
                    assert!(seen.contains(&words(line)), "{}: {line}", file.name);
                }
            }
        }
    }

    #[test]
    fn a_key_has_the_comment_above_it() {
        let found =
            blocks("# About.\n\n[a]\n# One,\n# two.\n#key = 1\n# Three.\nlist = [\n    1,\n]\n");
        let shape: Vec<_> = found
            .iter()
            .map(|block| (block.table, block.comment.join(" "), block.lines.join(" ")))
            .collect();
        assert_eq!(
            shape,
            [
                (None, "About.".to_owned(), String::new()),
                (Some("[a]"), String::new(), String::new()),
                (None, "One, two.".to_owned(), "key = 1".to_owned()),
                (None, "Three.".to_owned(), "list =".to_owned()),
            ]
        );
    }
}
