//! Programs that only start another one, and how to find it in their arguments.

use std::borrow::Cow;

use super::interpreters::{is_python, java, node, python, script, shell};
use super::shell::is_assignment;
use super::wrappers::{keep, wrapped};

/// What a program starts.
pub enum Inner<'a> {
    /// Nothing that can be told.
    None,
    /// Another program, with its arguments.
    Command(Vec<Cow<'a, str>>),
    /// A shell script given as an argument.
    Script(&'a str),
}

/// The last part of a path, without a login shell's dash and a Windows suffix.
pub fn program_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_prefix('-').unwrap_or(name);
    match name
        .len()
        .checked_sub(4)
        .and_then(|at| name.split_at_checked(at))
    {
        Some((stem, suffix)) if suffix.eq_ignore_ascii_case(".exe") => stem,
        _ => name,
    }
}

/// What a program with these arguments starts.
pub fn inner<'a>(program: &'a str, args: &[&'a str]) -> Inner<'a> {
    let command = match program {
        // npm overwrites its own arguments with one line, for ps(1).
        _ if args.iter().all(|arg| arg.is_empty()) && program.contains(' ') => titled(program),
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" | "rbash" => {
            return shell(args);
        }
        "busybox" | "toybox" => keep(args),
        "env" => return env(args),
        "cargo" => args.first().filter(|arg| arg.starts_with('+')).map(|_| {
            let mut command = vec![Cow::Borrowed("cargo")];
            command.extend(args[1..].iter().map(|arg| Cow::Borrowed(*arg)));
            command
        }),
        "node" | "nodejs" => node(args),
        "java" => java(args),
        _ if is_python(program) => python(args),
        _ if matches!(program, "ruby" | "perl") => script(args, &["-I", "-r", "-C"], &["-e"]),
        _ => wrapped(program, args),
    };
    command.map_or(Inner::None, Inner::Command)
}

/// `env [-i] [-u NAME] [A=b]… command`, or `env -S 'command arguments'` as in a `#!` line.
fn env<'a>(args: &[&'a str]) -> Inner<'a> {
    if let Some(at) = args
        .iter()
        .position(|arg| *arg == "-S" || *arg == "--split-string")
    {
        let before_command = args[..at]
            .iter()
            .all(|arg| arg.starts_with('-') || is_assignment(arg));
        if let Some(script) = args.get(at + 1).filter(|_| before_command) {
            return Inner::Script(script);
        }
    }
    wrapped("env", args).map_or(Inner::None, Inner::Command)
}

/// A title such as `npm run build`, which a program wrote over its arguments.
fn titled(title: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut words = title.split_whitespace();
    let program = words
        .next()
        .filter(|word| matches!(*word, "npm" | "npx" | "pnpm" | "yarn"))?;
    Some(
        std::iter::once(program)
            .chain(words)
            .map(Cow::Borrowed)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_goes_by_its_name() {
        for (path, name) in [
            ("/usr/bin/make", "make"),
            ("make", "make"),
            ("-bash", "bash"),
            ("C:\\x\\Cargo.EXE", "Cargo"),
            (".exe", ""),
            ("ä.exe", "ä"),
            ("", ""),
        ] {
            assert_eq!(program_name(path), name, "{path}");
        }
    }
}
