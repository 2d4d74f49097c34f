//! A systemd and its bus, through their own command lines.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `systemctl` and `busctl`; a test records instead.
pub trait Session {
    /// Runs a command and answers its stdout; an error has its words.
    fn output(&mut self, argv: &[&str]) -> Result<String>;

    /// Whose systemd it is: the option that says so, if it takes one.
    fn scope(&self) -> Option<&'static str>;

    /// The words behind `program`, with the scope.
    fn ask(&mut self, program: &str, words: &[&str]) -> Result<String> {
        let argv: Vec<&str> = [program]
            .into_iter()
            .chain(self.scope())
            .chain(words.iter().copied())
            .collect();
        self.output(&argv)
    }

    /// Runs a command that changes something, and says so.
    fn run(&mut self, program: &str, words: &[&str]) -> Result<()> {
        self.ask(program, words)?;
        let scope = self
            .scope()
            .map_or_else(String::new, |scope| format!(" {scope}"));
        println!("ran {program}{scope} {}", words.join(" "));
        Ok(())
    }

    /// Runs `systemctl` to change something.
    fn systemctl(&mut self, words: &[&str]) -> Result<()> {
        self.run("systemctl", words)
    }

    /// A property of a unit.
    fn property(&mut self, unit: &str, name: &str) -> Result<String> {
        let option = format!("--property={name}");
        let text = self.ask("systemctl", &["show", &option, "--value", unit])?;
        Ok(text.trim().to_owned())
    }

    /// Whether a unit runs.
    fn is_active(&mut self, unit: &str) -> bool {
        self.ask("systemctl", &["--quiet", "is-active", unit])
            .is_ok()
    }

    /// Whether the manager answers.
    fn reachable(&mut self) -> Result<()> {
        self.ask("systemctl", &["show", "--property=Version", "--value"])
            .map(drop)
    }

    /// Has systemd and the bus read their files anew.
    fn reload(&mut self) -> Result<()> {
        self.systemctl(&["daemon-reload"])?;
        // dbus-broker finds new files only when told; dbus-daemon does not mind.
        self.run(
            "busctl",
            &[
                "call",
                "org.freedesktop.DBus",
                "/org/freedesktop/DBus",
                "org.freedesktop.DBus",
                "ReloadConfig",
            ],
        )
    }
}

/// A real one.
#[derive(Debug)]
pub struct Systemctl {
    scope: Option<&'static str>,
    /// For callers that come without it, as through su or nsenter.
    runtime_dir: Option<String>,
}

impl Systemctl {
    /// That of the user who runs us.
    pub fn user() -> Systemctl {
        let usual = format!("/run/user/{}", nix::unistd::Uid::effective());
        let missing = std::env::var_os("XDG_RUNTIME_DIR").is_none() && Path::new(&usual).is_dir();
        Systemctl {
            scope: Some("--user"),
            runtime_dir: missing.then_some(usual),
        }
    }

    /// The machine's.
    pub fn system() -> Systemctl {
        Systemctl {
            scope: None,
            runtime_dir: None,
        }
    }
}

impl Session for Systemctl {
    fn scope(&self) -> Option<&'static str> {
        self.scope
    }

    fn output(&mut self, argv: &[&str]) -> Result<String> {
        let line = argv.join(" ");
        let mut command = Command::new(argv[0]);
        command
            .args(&argv[1..])
            .stdin(Stdio::null())
            .env("SYSTEMD_COLORS", "0")
            .env("SYSTEMD_PAGER", "");
        if let Some(dir) = &self.runtime_dir {
            command.env("XDG_RUNTIME_DIR", dir);
        }
        let output = command
            .output()
            .with_context(|| format!("cannot run {line}"))?;
        if !output.status.success() {
            bail!(
                "{line} failed ({}): {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
