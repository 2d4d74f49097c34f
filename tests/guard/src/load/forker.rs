//! A load whose children come and go while it is looked at.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::spinner::Spinner;

/// Children that live at the same time.
const AT_ONCE: usize = 4;

/// Burns CPU and starts a child that ends at once, over and over.
pub fn run() -> Result<()> {
    let spinner = Spinner::new(true)?;
    std::thread::spawn(|| {
        let mut living = std::collections::VecDeque::new();
        loop {
            match Command::new("true").spawn() {
                Ok(child) => living.push_back(child),
                // Out of processes for the moment: the next round tries again.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
            if living.len() >= AT_ONCE
                && let Some(mut oldest) = living.pop_front()
            {
                // A child that cannot be waited for is gone, which is all that matters here.
                let _ = oldest.wait();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    spinner.ready_and_obey(&[])
}
