//! Programs that run the command in their arguments, as data.

use std::borrow::Cow;

use super::shell::is_assignment;

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

/// To add one, add an entry; a program with several forms has several.
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

/// The command that a wrapper with these arguments runs.
pub fn wrapped<'a>(program: &str, args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    WRAPPERS
        .iter()
        .filter(|wrapper| wrapper.programs.contains(&program))
        .find_map(|wrapper| {
            let mut at = skip_options(args, wrapper.values);
            if !wrapper.verbs.is_empty() {
                args.get(at).filter(|verb| wrapper.verbs.contains(*verb))?;
                at += 1;
                if wrapper.modules
                    && let Some(command) = module(&args[at..], wrapper.values)
                {
                    return Some(command);
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
pub fn skip_options(args: &[&str], values: &[&str]) -> usize {
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

/// The arguments as a command, unless there are none.
pub fn keep<'a>(args: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
    (!args.is_empty()).then(|| args.iter().map(|arg| Cow::Borrowed(*arg)).collect())
}

/// `@scope/name@version` goes by `name`.
fn package_program(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap_or(package);
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}
