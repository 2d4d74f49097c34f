//! Where the host fetches its packages: both formats of apt's sources (`sources.list(5)`).

use std::path::Path;

/// The texts of all source files below `root` (/etc/apt), the main one first. Unreadable ones are left out: they
/// only cost us the host's own mirror.
pub fn read(root: &Path) -> Vec<String> {
    let mut paths = vec![root.join("sources.list")];
    let mut more: Vec<_> = std::fs::read_dir(root.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "list" || extension == "sources")
        })
        .collect();
    more.sort();
    paths.append(&mut more);
    paths
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}

/// The first plain http(s) address that serves binary packages of exactly `suite`, component main.
pub fn archive(text: &str, suite: &str) -> Option<String> {
    one_line(text, suite).or_else(|| deb822(text, suite))
}

/// `deb [options] URI SUITE COMPONENT…`
fn one_line(text: &str, suite: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let address = words.next().filter(|address| is_web(address))?;
        (words.next() == Some(suite) && words.any(|component| component == "main"))
            .then(|| tidy(address))
    })
}

/// Paragraphs of `Key: value` with `Types`, `URIs`, `Suites`, `Components`.
fn deb822(text: &str, suite: &str) -> Option<String> {
    let mut paragraphs: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            paragraphs.push(Vec::new());
        } else {
            paragraphs.last_mut().expect("never empty").push(line);
        }
    }
    paragraphs.iter().find_map(|lines| {
        let words = |key: &str| -> Vec<&str> {
            lines
                .iter()
                .filter_map(|line| line.split_once(':'))
                .filter(|(name, _)| name.eq_ignore_ascii_case(key))
                .flat_map(|(_, value)| value.split_whitespace())
                .collect()
        };
        let serves = words("Types").contains(&"deb")
            && words("Suites").contains(&suite)
            && words("Components").contains(&"main");
        let enabled = !words("Enabled").contains(&"no");
        let address = words("URIs").into_iter().find(|address| is_web(address))?;
        (serves && enabled).then(|| tidy(address))
    })
}

fn is_web(address: &str) -> bool {
    address.starts_with("http://") || address.starts_with("https://")
}

fn tidy(address: &str) -> String {
    address.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_entries_with_and_without_options() {
        let text = "# deb http://no.example/debian trixie main\n\
                    deb-src http://src.example/debian trixie main\n\
                    deb http://security.example/debian-security trixie-security main\n\
                    deb cdrom:[Debian]/ trixie main\n\
                    deb [arch=amd64 signed-by=/x.gpg] https://a.example/debian/ trixie main contrib\n";
        assert_eq!(
            archive(text, "trixie").as_deref(),
            Some("https://a.example/debian")
        );
        assert_eq!(archive(text, "sid"), None);
    }

    #[test]
    fn deb822_paragraphs() {
        let text = "Types: deb\n# a comment\nURIs: http://s.example/debian-security\nSuites: bookworm-security\n\
                    Components: main\n\nTypes: deb deb-src\nURIs: http://a.example/debian\n\
                    Suites: bookworm bookworm-updates\nComponents: main\n";
        assert_eq!(
            archive(text, "bookworm").as_deref(),
            Some("http://a.example/debian")
        );
    }

    #[test]
    fn a_disabled_paragraph_and_another_component_do_not_count() {
        let disabled = "Types: deb\nURIs: http://a.example/debian\nSuites: sid\nComponents: main\nEnabled: no\n";
        assert_eq!(archive(disabled, "sid"), None);
        assert_eq!(
            archive("deb http://a.example/debian sid contrib\n", "sid"),
            None
        );
    }
}
