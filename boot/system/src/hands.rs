//! What changes the machine: files of the kernel, swap, units.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::raw::c_int;

use nix::libc;

use crate::root::Root;

/// The ways in which Apply and Restore change a machine. Tests count and break them.
pub trait Hands {
    /// Writes a file that is there, in one write.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    fn write(&mut self, path: &str, value: &str) -> io::Result<()>;

    /// Takes a swap area out of use; the kernel brings back what is in it first.
    ///
    /// # Errors
    ///
    /// ENOMEM where memory does not suffice for what is in it.
    fn swap_off(&mut self, device: &str) -> io::Result<()>;

    /// Takes it into use again; a negative priority is the kernel's own choice.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    fn swap_on(&mut self, device: &str, priority: i32) -> io::Result<()>;

    /// Whether a unit runs.
    ///
    /// # Errors
    ///
    /// Nobody can tell, and why.
    fn unit_is_active(&mut self, unit: &str) -> Result<bool, String>;

    /// Stops it until somebody starts it.
    ///
    /// # Errors
    ///
    /// What the service manager answered.
    fn stop_unit(&mut self, unit: &str) -> Result<(), String>;

    /// Starts it again.
    ///
    /// # Errors
    ///
    /// What the service manager answered.
    fn start_unit(&mut self, unit: &str) -> Result<(), String>;
}

/// The part of [`Hands`] that only a service manager can do.
pub trait Units {
    /// As [`Hands::unit_is_active`].
    ///
    /// # Errors
    ///
    /// Nobody can tell, and why.
    fn is_active(&mut self, unit: &str) -> Result<bool, String>;

    /// As [`Hands::stop_unit`].
    ///
    /// # Errors
    ///
    /// What the service manager answered.
    fn stop(&mut self, unit: &str) -> Result<(), String>;

    /// As [`Hands::start_unit`].
    ///
    /// # Errors
    ///
    /// What the service manager answered.
    fn start(&mut self, unit: &str) -> Result<(), String>;
}

/// No service manager to ask: units are reported as unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUnits;

impl Units for NoUnits {
    fn is_active(&mut self, _unit: &str) -> Result<bool, String> {
        Err("no service manager is asked".to_owned())
    }

    fn stop(&mut self, unit: &str) -> Result<(), String> {
        self.is_active(unit).map(|_| ())
    }

    fn start(&mut self, unit: &str) -> Result<(), String> {
        self.is_active(unit).map(|_| ())
    }
}

/// Hands on the files below a root. Swap areas are the running machine's alone.
#[derive(Debug)]
pub struct Live<U> {
    root: Root,
    units: U,
}

// swapon(2): the priority is in the low bits, beside the flag that says there is one. libc lacks both.
const SWAP_FLAG_PREFER: c_int = 0x8000;
const SWAP_FLAG_PRIO_MASK: c_int = 0x7fff;

impl<U: Units> Live<U> {
    /// Hands on `root`.
    pub fn new(root: Root, units: U) -> Self {
        Live { root, units }
    }

    fn device(&self, device: &str) -> io::Result<CString> {
        if !self.root.is_machine() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a recorded tree has no swap areas of its own",
            ));
        }
        Ok(CString::new(device)?)
    }
}

impl<U: Units> Hands for Live<U> {
    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        let mut file = self.root.open_to_write(path)?;
        // One call: the kernel takes each write for a whole value.
        let written = file.write(value.as_bytes())?;
        if written < value.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "the kernel took a part of the value only",
            ));
        }
        Ok(())
    }

    fn swap_off(&mut self, device: &str) -> io::Result<()> {
        let path = self.device(device)?;
        // SAFETY: swapoff(2) reads the NUL-terminated path, which outlives the call.
        match unsafe { libc::swapoff(path.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn swap_on(&mut self, device: &str, priority: i32) -> io::Result<()> {
        let path = self.device(device)?;
        let flags = match priority {
            0.. => SWAP_FLAG_PREFER | (priority & SWAP_FLAG_PRIO_MASK),
            _ => 0,
        };
        // SAFETY: swapon(2) reads the NUL-terminated path, which outlives the call.
        match unsafe { libc::swapon(path.as_ptr(), flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn unit_is_active(&mut self, unit: &str) -> Result<bool, String> {
        self.units.is_active(unit)
    }

    fn stop_unit(&mut self, unit: &str) -> Result<(), String> {
        self.units.stop(unit)
    }

    fn start_unit(&mut self, unit: &str) -> Result<(), String> {
        self.units.start(unit)
    }
}
