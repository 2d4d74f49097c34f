//! Programs that run a script, module or class in their arguments.

use std::borrow::Cow;

use super::unwrap::{Inner, program_name};
use super::wrappers::{keep, skip_options};

/// `sh -c SCRIPT`, or `sh FILE arguments`.
pub fn shell<'a>(args: &[&'a str]) -> Inner<'a> {
    let mut is_script = false;
    let mut at = 0;
    while let Some(arg) = args
        .get(at)
        .filter(|arg| arg.len() > 1 && arg.starts_with(['-', '+']))
    {
        at += 1;
        if *arg == "--" {
            break;
        }
        if let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            is_script |= letters.contains('c');
        }
        // The last letter of `-euo pipefail` takes a value.
        let value = !arg.starts_with("--") && arg.ends_with(['o', 'O']);
        at += usize::from(value || matches!(*arg, "--rcfile" | "--init-file" | "--command"));
        if *arg == "--command" {
            return args
                .get(at - 1)
                .map_or(Inner::None, |script| Inner::Script(script));
        }
    }
    match args.get(at) {
        None => Inner::None,
        Some(script) if is_script => Inner::Script(script),
        Some(_) => keep(&args[at..]).map_or(Inner::None, Inner::Command),
    }
}

/// Whether a program is Python, whatever its version.
pub fn is_python(program: &str) -> bool {
    let version = program
        .strip_prefix("python")
        .or_else(|| program.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// `python -m MODULE …`, or `python FILE …`. Options can be bundled, with `m` or `c` as the last.
pub fn python<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return keep(&args[at..]);
        };
        at += 1;
        if letters.starts_with('-') {
            continue;
        }
        match letters.find(['c', 'm', 'W', 'X']) {
            None => {}
            Some(letter) => {
                let attached = &letters[letter + 1..];
                match &letters[letter..=letter] {
                    "c" => return None,
                    "m" if attached.is_empty() => return keep(args.get(at..)?),
                    "m" => {
                        let mut command = vec![Cow::Borrowed(attached)];
                        command.extend(args[at..].iter().map(|arg| Cow::Borrowed(*arg)));
                        return Some(command);
                    }
                    _ => at += usize::from(attached.is_empty()),
                }
            }
        }
    }
    None
}

/// `PROGRAM [options] FILE …` of an interpreter.
pub fn script<'a>(args: &[&'a str], values: &[&str], stop: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let at = skip_options(args, values);
    let inline = args[..at].iter().any(|arg| stop.contains(arg));
    if inline { None } else { keep(&args[at..]) }
}

/// A script of a package goes by its own name, or by its package's where its own says nothing.
pub fn node<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    let values = [
        "-r",
        "--require",
        "--loader",
        "--experimental-loader",
        "--import",
        "-C",
        "--conditions",
        "--env-file",
    ];
    let mut command = script(args, &values, &["-e", "--eval", "-p", "--print", "-pe"])?;
    let name = node_script(&command[0]).to_owned();
    command[0] = Cow::Owned(name);
    Some(command)
}

fn node_script(path: &str) -> &str {
    let name = program_name(path);
    let stem = [".js", ".mjs", ".cjs"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    let says_nothing = matches!(stem, "bin" | "cli" | "index" | "main" | "run" | "start");
    let package = path
        .rsplit_once("node_modules/")
        .map(|(_, rest)| rest)
        .filter(|_| says_nothing);
    let stem = package.map_or(stem, |rest| {
        let mut parts = rest.split('/');
        match parts.next() {
            Some(scope) if scope.starts_with('@') => parts.next().unwrap_or(scope),
            Some(package) => package,
            None => stem,
        }
    });
    stem.strip_suffix("-cli").unwrap_or(stem)
}

/// The main class, or the jar.
pub fn java<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    let values = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
        "--upgrade-module-path",
        "--source",
    ];
    let options = skip_options(args, &values);
    match args[..options].iter().position(|arg| *arg == "-jar") {
        Some(at) => keep(&args[at + 1..]),
        None => keep(&args[options..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_script_goes_by_its_package_where_its_own_name_says_nothing() {
        for (path, name) in [
            ("/x/node_modules/.bin/tsc", "tsc"),
            ("/x/node_modules/typescript/bin/tsc", "tsc"),
            ("/x/node_modules/parcel/lib/bin.js", "parcel"),
            ("/x/node_modules/@angular/cli/bin/index.js", "cli"),
            ("/x/node_modules/webpack-cli/bin/cli.js", "webpack"),
            ("/usr/lib/node_modules/npm/bin/npm-cli.js", "npm"),
            ("server.js", "server"),
        ] {
            assert_eq!(node_script(path), name, "{path}");
        }
    }
}
