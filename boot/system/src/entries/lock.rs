//! One writer at a time.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{EntriesError, Loader, Options};
use crate::root::Root;

/// Ours.
const FOLDER: &str = "run/bench-profile";
const NAME: &str = "boot-entries.lock";
/// That of limine-entry-tool, which holds it while it runs hooks.
const LIMINE: &str = "run/lock/boot-partition.lock";
/// Whoever holds it writes a few small files.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _files: Vec<File>,
}

/// Waits for the right to write.
pub fn lock(root: &Root, loader: Loader, options: &Options) -> Result<Lock, EntriesError> {
    let path = format!("{FOLDER}/{NAME}");
    let wrap = |error: std::io::Error| EntriesError::File(root.error(&path, error));
    let folder = root.folder(FOLDER).map_err(wrap)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = rustix::fs::openat(&folder, NAME, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| wrap(error.into()))?;
    let mut files = vec![held(File::from(own), &path)?];
    // A hook runs below it already.
    if loader == Loader::Limine
        && !options.hook
        && let Ok(theirs) = root.open_in_place(LIMINE)
    {
        files.push(held(theirs, LIMINE)?);
    }
    Ok(Lock { _files: files })
}

fn held(file: File, path: &str) -> Result<File, EntriesError> {
    let since = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::AGAIN | Errno::INTR) if since.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(_) => return Err(EntriesError::Busy(format!("/{path}"))),
        }
    }
}
