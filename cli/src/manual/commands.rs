//! A page for each command, from the definition that `--help` is made of.

use clap::{Arg, Command};

use super::troff::Page;

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
SYSTEMD_SSH
    what --host starts instead of ssh
NO_COLOR
    when set and not empty, no colour";

const OTHERS: &str = "workload-guardd(8), guard.toml(5), machine.toml(5), org.workloadguard.Guard1(5), \
                      org.workloadguard.BenchPrep1(5), systemctl(1), busctl(1), systemd.resource-control(5)";

/// Every command, the program itself first.
pub fn all(mut root: Command) -> Vec<Command> {
    root = root.disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    let mut waiting = vec![root];
    while let Some(command) = waiting.pop() {
        let below: Vec<Command> = shown_below(&command).cloned().collect();
        waiting.extend(below.into_iter().rev());
        all.push(command);
    }
    all
}

fn shown_below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// The page's name: `workload-guard-quota-set`.
pub fn name(command: &Command) -> String {
    whole_name(command).replace(' ', "-")
}

fn whole_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

/// The page.
pub fn page(command: &Command) -> String {
    let is_root = !whole_name(command).contains(' ');
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut page = Page::new(&name(command), 1, about.trim_end_matches('.'));
    page.section("SYNOPSIS");
    page.text(&usage(command));
    page.section("DESCRIPTION");
    let long = command.get_long_about().map(ToString::to_string);
    page.text(&match long {
        Some(long) if !long.starts_with(&about) => format!("{about}.\n\n{long}"),
        Some(long) => long,
        None => format!("{}.", about.trim_end_matches('.')),
    });
    let shown = |arg: &&Arg| !arg.is_hide_set();
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(shown)
        .partition(|arg| arg.is_positional());
    for (heading, args) in [("ARGUMENTS", positional), ("OPTIONS", options)] {
        if args.is_empty() {
            continue;
        }
        page.section(heading);
        for arg in args {
            page.item(&term(arg), &help(arg));
        }
    }
    if command.has_subcommands() {
        page.section("COMMANDS");
        for sub in shown_below(command) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            page.item(sub.get_name(), &format!("{about}; {}(1)", name(sub)));
        }
    }
    // -h shows the first of them, --help the second where there is one.
    let details = [command.get_after_help(), command.get_after_long_help()];
    let details: Vec<String> = details.iter().flatten().map(ToString::to_string).collect();
    if !details.is_empty() {
        page.section(if is_root { "EXIT STATUS" } else { "DETAILS" });
        page.text(&details.join("\n\n"));
    }
    if is_root {
        page.section("FILES");
        page.verbatim(FILES);
        page.section("ENVIRONMENT");
        page.verbatim(ENVIRONMENT);
    }
    page.section("SEE ALSO");
    page.text(&match whole_name(command).rsplit_once(' ') {
        Some((parent, _)) => format!("{}(1), {OTHERS}", parent.replace(' ', "-")),
        None => OTHERS.to_owned(),
    });
    page.done()
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage:").trim_start().to_owned()
}

/// `-H, --host <HOST>`
fn term(arg: &Arg) -> String {
    // As --help shows it: `-j, --json`, `--for <TIME>`, `[CMD]...`.
    let values = || {
        let names = arg.get_value_names().unwrap_or_default();
        let names: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
        names.join(" ")
    };
    if arg.is_positional() {
        return arg.to_string();
    }
    let mut term = String::new();
    if let Some(short) = arg.get_short() {
        term = format!("-{short}, ");
    }
    if let Some(long) = arg.get_long() {
        term.push_str(&format!("--{long}"));
    }
    if arg.get_action().takes_values() {
        term.push_str(&format!(" {}", values()));
    }
    term
}

fn help(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let default: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if arg.get_action().takes_values() && !default.is_empty() {
        text.push_str(&format!("\n\nDefault: {}", default.join(" ")));
    }
    let possible: Vec<_> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if arg.get_action().takes_values() && !possible.is_empty() {
        text.push_str(&format!("\n\nOne of: {}", possible.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::troff::{seen, words};
    use super::*;
    use crate::args::Cli;

    #[test]
    fn each_command_has_a_page_that_says_what_its_help_says() {
        let commands = all(Cli::command());
        assert!(commands.len() > 30, "{}", commands.len());
        for command in commands {
            let name = name(&command);
            let page = seen(&super::super::page(&format!("{name}.1")).unwrap());
            let shown = command.clone().term_width(0).render_long_help().to_string();
            let shown = words(&shown);
            let says = |text: &str| {
                let text = words(text);
                assert!(shown.contains(&text), "{name} --help lacks {text:?}");
                assert!(
                    page.contains(&text),
                    "the page of {name} lacks {text:?}:\n{page}"
                );
            };
            for text in [
                command.get_long_about().or(command.get_about()),
                command.get_after_long_help().or(command.get_after_help()),
            ] {
                says(&text.map(ToString::to_string).unwrap_or_default());
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                says(&term(arg));
                let help = arg.get_long_help().or(arg.get_help());
                says(&help.map(ToString::to_string).unwrap_or_default());
            }
            // And nothing that begins with a dash is in the help alone.
            let options = shown.split(' ').filter(|word| {
                word.starts_with("--")
                    && word.len() > 2
                    && word.ends_with(|c: char| c.is_alphabetic())
            });
            for option in options {
                assert!(page.contains(option), "the page of {name} lacks {option}");
            }
        }
    }

    #[test]
    fn the_exit_codes_are_on_the_first_page() {
        let page = super::super::page("workload-guard.1").unwrap();
        assert!(page.contains(".SH \"EXIT STATUS\"\n") && page.contains("  77 "));
    }
}
