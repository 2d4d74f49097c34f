//! The user's systemd and bus, through their own command lines.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `systemctl` and `busctl`; a test records instead.
pub trait Session {
    /// Runs a command and answers its stdout; an error has its words.
    fn output(&mut self, argv: &[&str]) -> Result<String>;

    /// Runs a command that changes something, and says so.
    fn run(&mut self, argv: &[&str]) -> Result<()> {
        self.output(argv)?;
        println!("ran {}", argv.join(" "));
        Ok(())
    }

    /// Whether a command succeeds.
    fn succeeds(&mut self, argv: &[&str]) -> bool {
        self.output(argv).is_ok()
    }

    /// Whether the user manager answers.
    fn reachable(&mut self) -> Result<()> {
        self.output(&[
            "systemctl",
            "--user",
            "show",
            "--property=Version",
            "--value",
        ])
        .map(drop)
    }
}

/// The real one.
#[derive(Debug)]
pub struct Systemctl {
    /// For callers that come without it, as through su or nsenter.
    runtime_dir: Option<String>,
}

impl Systemctl {
    /// For the user who runs us.
    pub fn new() -> Systemctl {
        let usual = format!("/run/user/{}", nix::unistd::Uid::effective());
        let missing = std::env::var_os("XDG_RUNTIME_DIR").is_none() && Path::new(&usual).is_dir();
        Systemctl {
            runtime_dir: missing.then_some(usual),
        }
    }
}

impl Session for Systemctl {
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
