//! How long our own thread waited for a CPU (kernel, Documentation/scheduler/sched-stats.rst).

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Nanoseconds that the main thread, which is the guard's loop, waited on a run queue so far. `Ok(None)`:
/// this kernel does not count it.
pub(super) fn read(proc: &Path) -> Result<Option<u64>, String> {
    let file = proc.join("self/schedstat");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    // Time on a CPU, time waiting for one, number of time slices.
    let waited = text.split_ascii_whitespace().nth(1);
    match waited.and_then(|field| field.parse().ok()) {
        Some(nanoseconds) => Ok(Some(nanoseconds)),
        None => Err(format!("{} says {:?}", file.display(), text.trim())),
    }
}
