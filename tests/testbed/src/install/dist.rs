//! What is installed: a folder that was laid out, or what the checkout builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::payload::{Workspace, cargo};

/// Where the parts lie.
#[derive(Clone, Debug)]
pub struct Dist {
    programs: PathBuf,
    units: PathBuf,
    config: PathBuf,
}

impl Dist {
    /// A folder with the programs, `units/` and `config/`.
    pub fn at(folder: &Path) -> Result<Dist> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot find {}", folder.display()))?;
        Ok(Dist {
            units: folder.join("units/user"),
            config: folder.join("config"),
            programs: folder,
        })
    }

    /// Builds the release programs of the workspace that we are in.
    pub fn build() -> Result<Dist> {
        let workspace = Workspace::locate()?;
        let status = cargo()
            .args([
                "build",
                "--release",
                "--package=workload-guard",
                "--package=workload-guardd",
            ])
            .current_dir(&workspace.workspace_root)
            .stdin(Stdio::null())
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!(
                "the product does not build ({status}); cargo's messages are above. Nothing was installed"
            );
        }
        Ok(Dist {
            programs: workspace.target_directory.join("release"),
            units: workspace.workspace_root.join("units/user"),
            config: workspace.workspace_root.join("config"),
        })
    }

    /// A program.
    pub fn program(&self, name: &str) -> Result<Vec<u8>> {
        read(&self.programs.join(name))
    }

    /// A file of `units/user`.
    pub fn unit(&self, name: &str) -> Result<Vec<u8>> {
        read(&self.units.join(name))
    }

    /// The settings that a first installation gets.
    pub fn default_settings(&self) -> Result<Vec<u8>> {
        read(&self.config.join("guard.toml"))
    }

    /// What the command line prints when called with `args`: its manual and completions. This also tells, before
    /// anything changes, whether the program runs here at all.
    pub fn ask_cli(&self, args: &[&str]) -> Result<Vec<u8>> {
        let program = self.programs.join("workload-guard");
        let output = Command::new(&program)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} does not run here", program.display()))?;
        if !output.status.success() {
            bail!(
                "{} {} failed ({}): {}",
                program.display(),
                args.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(output.stdout)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
