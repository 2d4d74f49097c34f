//! Every command in README.md and docs is run by a user who has installed the product, and says what the page has.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{MACHINE, Scenario};
use crate::docs::{self, Shell};
use crate::harness::guard::{Guard, install_product};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{HOME, PAYLOAD, Session};

pub const SCENARIO: Scenario = Scenario {
    name: "documentation-runs",
    // Budgets hold there, and the kernel tells of new programs: what the pages show.
    tiers: MACHINE,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 300,
    run,
};

/// A page's command that waits longer than this for something says so itself.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(session: &Session) -> Verdict {
    step(install_product()?);
    Guard::connect(session)?.start()?;
    let (mut shells, mut ran, mut left, mut wrong) = (0, 0, 0, Vec::new());
    for path in pages()? {
        let name = path.strip_prefix(PAYLOAD)?.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| name.clone())?;
        let page = docs::read(&text).with_context(|| name.clone())?;
        shells += 1;
        let mut shell = Shell::start(
            // In a scope below app.slice, as a desktop's terminals are.
            &[
                "systemd-run",
                "--user",
                "--scope",
                "--quiet",
                &format!("--unit=terminal-{shells}"),
                "bash",
            ],
            HOME,
        )?;
        for example in &page.examples {
            let what = format!("{name}:{}: {}", example.line, example.command);
            let (status, said) = shell.run(&example.command, PATIENCE).context(what.clone())?;
            if status != example.status {
                wrong.push(format!("{what}\nended with {status}, not {}: {said}", example.status));
            } else if let Err(error) = docs::compare(&example.says, &said) {
                wrong.push(format!("{what}\n{error}"));
            }
        }
        for (line, reason) in &page.not_run {
            step(format_args!("not run: {name}:{line}: {reason}"));
        }
        ran += page.examples.len();
        left += page.not_run.len();
    }
    ensure!(
        wrong.is_empty(),
        "{} of {ran} commands do not say what the page has:\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    ensure!(ran > 40, "only {ran} commands were found");
    step(format_args!(
        "{ran} commands of the documentation ran and said what the pages have; {left} cannot run here, each for a reason"
    ));
    Ok(())
}

/// The pages, in a fixed order.
fn pages() -> Result<Vec<PathBuf>> {
    let root = Path::new(PAYLOAD);
    let mut pages = Vec::new();
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages.insert(0, root.join("README.md"));
    Ok(pages)
}
