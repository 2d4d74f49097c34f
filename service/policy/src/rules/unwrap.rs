//! Programs that only start another one, and how to find it in their arguments.

use std::borrow::Cow;

use super::shell::is_assignment;

/// What a program starts.
pub enum Inner<'a> {
    /// Nothing that can be told.
    None,
    /// Another program, with its arguments.
    Command(Vec<Cow<'a, str>>),
    /// A shell script given as an argument.
    Script(&'a str),
}

/// A program that runs the command in its arguments.
struct Wrapper {
    programs: &'static [&'static str],
    /// A subcommand that must come first, any of these; none: no subcommand.
    verbs: &'static [&'static str],
    /// Options whose value is the next argument.
    values: &'static [&'static str],
    /// Arguments between the options and the command, such as timeout's duration.
    operands: usize,
    /// Options that name a Python module to run.
    modules: bool,
    /// The command is a package's, perhaps with a scope and a version.
    package: bool,
}

const PLAIN: Wrapper = Wrapper {
    programs: &[],
    verbs: &[],
    values: &[],
    operands: 0,
    modules: false,
    package: false,
};

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        programs: &[
            "nohup",
            "setsid",
            "ccache",
            "sccache",
            "distcc",
            "icecc",
            "chronic",
            "eatmydata",
            "unbuffer",
            "corepack",
            "dbus-run-session",
            "fakeroot",
            "catchsegv",
            "cross-env",
            "cross-env-shell",
            "dotenv",
            "command",
            "exec",
        ],
        values: &["-e", "-f", "-o"],
        ..PLAIN
    },
    Wrapper {
        programs: &["env"],
        values: &["-u", "--unset", "-C", "--chdir"],
        ..PLAIN
    },
    Wrapper {
        programs: &["nice"],
        values: &["-n", "--adjustment"],
        ..PLAIN
    },
    Wrapper {
        programs: &["ionice"],
        values: &["-c", "--class", "-n", "--classdata"],
        ..PLAIN
    },
    Wrapper {
        programs: &["time"],
        values: &["-f", "--format", "-o", "--output"],
        ..PLAIN
    },
    Wrapper {
        programs: &["timeout"],
        values: &["-s", "--signal", "-k", "--kill-after"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: &["stdbuf"],
        values: &["-i", "--input", "-o", "--output", "-e", "--error"],
        ..PLAIN
    },
    Wrapper {
        programs: &["taskset", "chrt"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: &["xvfb-run"],
        values: &[
            "-e",
            "--error-file",
            "-f",
            "--auth-file",
            "-n",
            "--server-num",
            "-p",
            "--xauth-protocol",
            "-s",
            "--server-args",
        ],
        ..PLAIN
    },
    Wrapper {
        programs: &["systemd-inhibit"],
        values: &["--what", "--who", "--why", "--mode"],
        ..PLAIN
    },
    Wrapper {
        programs: &["npx", "bunx", "pnpx"],
        values: &["-p", "--package"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["npm"],
        verbs: &["exec", "x"],
        values: &["-p", "--package", "-w", "--workspace", "--prefix"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["pnpm"],
        verbs: &["exec", "dlx"],
        values: &["-C", "--dir", "-F", "--filter", "--package"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["yarn", "yarnpkg"],
        verbs: &["exec", "dlx"],
        values: &["--cwd", "-p", "--package"],
        package: true,
        ..PLAIN
    },
    // A package's program is also a script's name for these.
    Wrapper {
        programs: &["pnpm", "yarn", "yarnpkg", "bun"],
        verbs: &["run", "x"],
        values: &["-C", "--dir", "-F", "--filter", "--cwd"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["pnpm", "yarn", "yarnpkg"],
        values: &["-C", "--dir", "-F", "--filter", "--cwd"],
        ..PLAIN
    },
    Wrapper {
        programs: &[
            "uv",
            "pdm",
            "rye",
            "hatch",
            "poetry",
            "pipenv",
            "conda",
            "mamba",
            "micromamba",
            "pixi",
        ],
        verbs: &["run"],
        values: &[
            "-p",
            "--python",
            "--with",
            "--with-requirements",
            "--with-editable",
            "--env-file",
            "--directory",
            "--project",
            "--extra",
            "--group",
            "--package",
            "-n",
            "--name",
            "-C",
            "-e",
            "--environment",
            "--index-url",
            "--cwd",
        ],
        modules: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["uvx"],
        values: &["--from", "--with", "-p", "--python"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["pipx"],
        verbs: &["run"],
        values: &["--spec", "--python"],
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &["uv"],
        verbs: &["tool"],
        values: &["--from", "--with", "-p", "--python"],
        operands: 1,
        package: true,
        ..PLAIN
    },
    Wrapper {
        programs: &[
            "bundle", "mise", "asdf", "pyenv", "rbenv", "nodenv", "volta",
        ],
        verbs: &["exec", "x", "run"],
        ..PLAIN
    },
    Wrapper {
        programs: &["direnv"],
        verbs: &["exec"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: &["rustup"],
        verbs: &["run"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: &["coverage"],
        verbs: &["run"],
        values: &[
            "--source",
            "--include",
            "--omit",
            "--rcfile",
            "--concurrency",
            "--context",
            "--data-file",
        ],
        modules: true,
        ..PLAIN
    },
];

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
        "cargo" => args
            .first()
            .filter(|arg| arg.starts_with('+'))
            .and_then(|_| {
                let mut command = vec![Cow::Borrowed("cargo")];
                command.extend(args[1..].iter().map(|arg| Cow::Borrowed(*arg)));
                Some(command)
            }),
        "node" | "nodejs" => node(args),
        "java" => java(args),
        _ if is_python(program) => python(args),
        _ if matches!(program, "ruby" | "perl") => script(args, &["-I", "-r", "-C"], &["-e"]),
        _ => wrapped(program, args),
    };
    command.map_or(Inner::None, Inner::Command)
}

fn wrapped<'a>(program: &str, args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    WRAPPERS
        .iter()
        .filter(|wrapper| wrapper.programs.contains(&program))
        .find_map(|wrapper| {
            let mut at = skip_options(args, wrapper.values);
            if !wrapper.verbs.is_empty() {
                args.get(at).filter(|verb| wrapper.verbs.contains(*verb))?;
                at += 1;
                if wrapper.modules {
                    if let Some(command) = module(&args[at..], wrapper.values) {
                        return Some(command);
                    }
                }
                at += skip_options(&args[at..], wrapper.values);
            }
            at += wrapper.operands;
            let mut rest = args.get(at..)?;
            // `uv tool run -p 3.12 ruff`: options can follow the operand too.
            if wrapper.operands > 0 && wrapper.package {
                rest = &rest[skip_options(rest, wrapper.values)..];
            }
            while rest.first().is_some_and(|arg| is_assignment(arg)) {
                rest = &rest[1..];
            }
            let mut command = keep(rest)?;
            if wrapper.package {
                command[0] = Cow::Owned(package_program(&command[0]).to_owned());
            }
            Some(command)
        })
}

/// How many arguments are options, their values, and the `--` after them.
fn skip_options(args: &[&str], values: &[&str]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if *arg == "--" {
            return at + 1;
        }
        if arg.len() < 2 || !arg.starts_with('-') {
            break;
        }
        at += if values.contains(arg) { 2 } else { 1 };
    }
    at.min(args.len())
}

/// `-m NAME …` among leading options.
fn module<'a>(args: &[&'a str], values: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let options = skip_options(args, values);
    let at = args[..options]
        .iter()
        .position(|arg| *arg == "-m" || *arg == "--module")?;
    keep(&args[at + 1..])
}

fn keep<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    (!args.is_empty()).then(|| args.iter().map(|arg| Cow::Borrowed(*arg)).collect())
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

/// `sh -c SCRIPT`, or `sh FILE arguments`.
fn shell<'a>(args: &[&'a str]) -> Inner<'a> {
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

fn is_python(program: &str) -> bool {
    let version = program
        .strip_prefix("python")
        .or_else(|| program.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// `python -m MODULE …`, or `python FILE …`. Options can be bundled, with `m` or `c` as the last.
fn python<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
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
fn script<'a>(args: &[&'a str], values: &[&str], stop: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let at = skip_options(args, values);
    let inline = args[..at].iter().any(|arg| stop.contains(arg));
    if inline { None } else { keep(&args[at..]) }
}

/// A script of a package goes by its own name, or by its package's where its own says nothing.
fn node<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
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

/// `@scope/name@version` goes by `name`.
fn package_program(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap_or(package);
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// The main class, or the jar.
fn java<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
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
