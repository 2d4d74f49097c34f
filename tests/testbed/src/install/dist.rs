//! What is installed: a folder that was laid out, or what the checkout builds.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::layout::{self, Part};
use crate::payload::{Workspace, cargo};

/// Where the parts lie.
#[derive(Clone, Debug)]
pub struct Dist {
    programs: PathBuf,
    data: PathBuf,
}

impl Dist {
    /// A folder with the programs and the checkout's folders of data (`units`, `config`, `polkit`).
    pub fn at(folder: &Path) -> Result<Dist> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot find {}", folder.display()))?;
        Ok(Dist {
            data: folder.clone(),
            programs: folder,
        })
    }

    /// Programs that were built to `programs`, and the checkout `data`.
    pub fn new(programs: PathBuf, data: PathBuf) -> Dist {
        Dist { programs, data }
    }

    /// Builds the release programs of these parts of the workspace that we are in.
    pub fn build(parts: &[Part]) -> Result<Dist> {
        let workspace = Workspace::locate()?;
        let status = cargo()
            .args(["build", "--release"])
            .args(
                layout::programs(parts)
                    .iter()
                    .map(|name| format!("--package={name}")),
            )
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
            data: workspace.workspace_root,
        })
    }

    /// A program.
    pub fn program(&self, name: &str) -> Result<Vec<u8>> {
        read(&self.programs.join(name))
    }

    /// A file of the checkout.
    pub fn data(&self, path: &str) -> Result<Vec<u8>> {
        read(&self.data.join(path))
    }

    /// What the command line prints when called with `args`: its manual and completions. This also tells, before
    /// anything changes, whether the program runs here at all.
    pub fn ask_cli<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>> {
        let program = self.programs.join("workload-guard");
        let output = Command::new(&program)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} does not run here", program.display()))?;
        if !output.status.success() {
            let words: Vec<_> = args
                .iter()
                .map(|word| word.as_ref().to_string_lossy())
                .collect();
            bail!(
                "{} {} failed ({}): {}",
                program.display(),
                words.join(" "),
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
