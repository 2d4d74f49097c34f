//! The manual is installed whole, and its readers find nothing wrong with it.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::install_product;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;

pub const SCENARIO: Scenario = Scenario {
    name: "manual-reads-clean",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

fn run(_session: &Session) -> Verdict {
    install_product()?;
    let pages = command::ok(&["workload-guard", "man", "--list"])?;
    let mut count = 0;
    for page in pages.lines() {
        let (name, section) = page.rsplit_once('.').context("a page without a section")?;
        let file = command::ok(&["man", "-w", section, name])
            .with_context(|| format!("{page} is not installed where man looks for it"))?;
        ensure!(file.starts_with("/home/dev/.local/"), "{page} is {file}");
        says_nothing(&["mandoc", "-Tlint", &file])?;
        says_nothing(&["man", "--warnings", "--local-file", "--troff-device=utf8", &file])
            .with_context(|| page.to_owned())?;
        let text = fs::read(&file)?;
        let said = command::ok(&["workload-guard", "man", page])?;
        ensure!(String::from_utf8_lossy(&text).trim() == said, "{file} is not what {page} says");
        count += 1;
    }
    ensure!(count > 40, "only {count} pages");
    step(format_args!("{count} pages, found by man; neither mandoc nor groff complains"));
    Ok(())
}

/// Of what a reader says only complaints count: man's page itself goes to its standard output.
fn says_nothing(argv: &[&str]) -> Result<()> {
    let ended = command::run(argv)?;
    let lint = argv[0] == "mandoc";
    let complaint = if lint { ended.said() } else { ended.stderr.trim().to_owned() };
    ensure!(ended.status == 0 && complaint.is_empty(), "{}: {complaint}", command::line(argv));
    ensure!(lint || !ended.stdout.is_empty(), "{} showed nothing", command::line(argv));
    Ok(())
}
