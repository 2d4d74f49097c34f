//! The page of the daemon, from what its `--help` prints.

use super::troff::Page;

/// Its name.
pub const PAGE: &str = "workload-guardd.8";

const USAGE: &str = include_str!("../../../service/daemon/src/usage.txt");

const FILES: &str = "\
workload-guard.service
    the unit that starts it, of the user manager
~/.config/linux-workload-guard/
    settings: guard.toml(5), rules.d, workload-guard.env
$XDG_RUNTIME_DIR/linux-workload-guard/
    what it knows of workloads beside systemd, until the user logs out
~/.local/state/linux-workload-guard/
    what it learned, and the history";

/// The page.
pub fn page() -> String {
    let (head, text) = USAGE.split_once("\n\n").unwrap_or((USAGE, ""));
    let summary = head
        .trim_start_matches("workload-guardd: ")
        .trim_end_matches('.');
    let mut page = Page::new("workload-guardd", 8, summary);
    page.section("SYNOPSIS");
    page.verbatim("workload-guardd");
    page.section("DESCRIPTION");
    page.text(text);
    page.section("FILES");
    page.verbatim(FILES);
    page.section("SEE ALSO");
    page.text("workload-guard(1), guard.toml(5), org.workloadguard.Guard1(5), systemctl(1), journalctl(1)");
    page.done()
}

#[cfg(test)]
mod tests {
    use super::super::troff::{seen, words};
    use super::*;

    #[test]
    fn the_page_says_what_the_daemons_help_says() {
        let page = seen(&page());
        let (_, text) = USAGE.split_once("\n\n").unwrap();
        assert!(page.contains(&words(text)), "{page}");
    }
}
