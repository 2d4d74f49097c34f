//! The manual page, from the same definition as the help.

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;

const FILES: &str = "\
/etc/linux-workload-guard/guard.toml, guard.toml.d/*.toml
~/.config/linux-workload-guard/guard.toml, guard.toml.d/*.toml
    settings, the last one wins
~/.config/linux-workload-guard/rules.d/*.toml
    rules that name heavy commands
~/.config/linux-workload-guard/workload-guard.env
    WORKLOAD_GUARD_* variables of the service, which win over all files
$XDG_RUNTIME_DIR/linux-workload-guard/
    routes, until the user logs out
~/.local/state/linux-workload-guard/adaptive.json
    what adaptive routing learned of commands
/etc/bench-profile/machine.toml
    the CPUs, units and switches of the bench profiles
/run/bench-profile/originals.json
    what was there before bench apply, until bench restore or a reboot
/var/backups/bench-profile/
    files of boot loaders as they were, by the time at which they were replaced";

const ENVIRONMENT: &str = "\
DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR
    where the user bus is
SHELL
    what run starts when no command is given
NO_COLOR
    when set and not empty, no colour";

/// Columns of the page's text: a page is shown 80 wide, with an indent.
const WIDTH: usize = 72;

/// The page as troff.
pub fn page() -> std::io::Result<Vec<u8>> {
    let root = Cli::command();
    let mut out = Vec::new();
    let man = Man::new(root.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    section(&mut out, "COMMANDS");
    for command in commands(root.clone()) {
        heading(&mut out, &command);
        // Without the line that is the same everywhere, and not as wide as the terminal happens to be.
        let mut command = command
            .mut_arg("help", |arg| arg.hide(true))
            .term_width(WIDTH);
        verbatim(&mut out, &command.render_long_help().to_string());
    }
    for (name, text) in [("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT)] {
        section(&mut out, name);
        verbatim(&mut out, text);
    }
    if let Some(text) = root.get_after_help() {
        section(&mut out, "EXIT STATUS");
        verbatim(&mut out, &text.to_string());
    }
    section(&mut out, "SEE ALSO");
    out.extend_from_slice(
        b"systemctl(1), busctl(1), systemd.slice(5), systemd.resource\\-control(5)\n",
    );
    Ok(out)
}

/// Every command with its whole name, subcommands of subcommands included.
fn commands(mut root: Command) -> Vec<Command> {
    root = root.disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    let mut waiting: Vec<Command> = root.get_subcommands().cloned().collect();
    waiting.reverse();
    while let Some(command) = waiting.pop() {
        waiting.extend(
            command
                .get_subcommands()
                .filter(|sub| sub.get_name() != "help")
                .cloned(),
        );
        all.push(command);
    }
    all
}

fn section(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(format!(".SH \"{name}\"\n").as_bytes());
}

fn heading(out: &mut Vec<u8>, command: &Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    out.extend_from_slice(format!(".SS \"{}\"\n", escape(name)).as_bytes());
}

/// `text` as it is, without filling.
fn verbatim(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b".nf\n");
    for line in text.trim_end().lines() {
        out.extend_from_slice(escape(line).as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b".fi\n");
}

/// Text that troff prints as it is (groff_char(7)): a backslash or a dash means itself, and a dot or quote that
/// begins a line is no request.
fn escape(line: &str) -> String {
    let line = line.replace('\\', "\\(rs").replace('-', "\\-");
    if line.starts_with(['.', '\'']) {
        format!("\\&{line}")
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_command_and_the_exit_codes() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        for name in [
            "status",
            "stats",
            "protect",
            "run",
            "attach",
            "config check",
            "rules test",
            "completions",
        ] {
            let heading = format!(".SS \"workload\\-guard {name}\"\n");
            assert_eq!(page.matches(&heading).count(), 1, "{name}\n{page}");
        }
        assert!(
            page.contains(".SH \"EXIT STATUS\"\n") && page.contains("  77 "),
            "{page}"
        );
    }

    #[test]
    fn text_cannot_become_a_troff_request() {
        assert_eq!(escape(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escape("a\\fBb-c"), "a\\(rsfBb\\-c");
    }
}
