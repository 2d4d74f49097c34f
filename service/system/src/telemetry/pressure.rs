//! Pressure stall information (kernel, Documentation/accounting/psi.rst).

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use guard_policy::quota::Signal;
use nix::libc;

/// One pressure file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pressure {
    /// It was there once: from then on, not being there is a fault.
    seen: bool,
}

impl Pressure {
    /// `some avg10`, as a part of 1.
    pub(super) fn read(&mut self, file: &Path) -> Signal {
        match fs::read_to_string(file) {
            Ok(text) => {
                self.seen = true;
                match some_avg10(&text) {
                    Some(percent) => Signal::now(percent / 100.0),
                    None => {
                        Signal::Broken(format!("{} has no line `some avg10=…`", file.display()))
                    }
                }
            }
            // Without CONFIG_PSI there is no file; with psi=0 it cannot be opened.
            Err(error)
                if !self.seen
                    && (error.kind() == ErrorKind::NotFound
                        || error.raw_os_error() == Some(libc::EOPNOTSUPP))
                    && file.parent().is_none_or(is_kernel_without) =>
            {
                Signal::Absent
            }
            Err(error) => Signal::Broken(format!("{}: {error}", file.display())),
        }
    }
}

/// A folder that is there without its pressure file, or `/proc/pressure` itself missing, is a kernel
/// without PSI. A missing control group is a group that is gone.
fn is_kernel_without(folder: &Path) -> bool {
    folder.is_dir() || folder.ends_with("pressure")
}

fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let avg10 = some
        .split_ascii_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?;
    // `inf` and `nan` parse too; the policy refuses what is not from 0 to 1.
    avg10.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_avg10_is_read_and_nothing_else() {
        let text = "some avg10=12.34 avg60=1.00 avg300=0.10 total=123\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_avg10(text), Some(12.34));
        assert_eq!(
            some_avg10("full avg10=1.00 avg60=0 avg300=0 total=0\n"),
            None
        );
        assert_eq!(some_avg10(""), None);
        assert_eq!(some_avg10("some avg10=x avg60=0"), None);
        assert_eq!(some_avg10("some avg60=1.0"), None);
    }
}
