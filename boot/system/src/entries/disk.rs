//! The steps by which files of a boot partition are changed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Each step. Tests cut the power before and in the middle of any of them.
pub trait Disk {
    /// A new file with this text, on the disk when this returns. One of this name that a broken run left goes.
    ///
    /// # Errors
    ///
    /// What the kernel answered, or that something else came back than was written.
    fn create(&mut self, folder: &OwnedFd, name: &str, text: &[u8], mode: u32) -> io::Result<()>;

    /// Gives a file the place of another.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    fn rename(&mut self, folder: &OwnedFd, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file away; that it is gone already is as good.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    fn remove(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()>;

    /// Has the folder's names on the disk.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    fn settle(&mut self, folder: &OwnedFd) -> io::Result<()>;
}

/// The machine's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Disk for Live {
    fn create(&mut self, folder: &OwnedFd, name: &str, text: &[u8], mode: u32) -> io::Result<()> {
        self.remove(folder, name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let mut file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
        match rustix::fs::fchmod(&file, mode) {
            // FAT keeps no modes.
            Ok(()) | Err(Errno::PERM | Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
        file.write_all(text)?;
        file.sync_all()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut back = Vec::new();
        File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?)
            .read_to_end(&mut back)?;
        match back == text {
            true => Ok(()),
            false => Err(io::Error::other(
                "something else was read back than was written",
            )),
        }
    }

    fn rename(&mut self, folder: &OwnedFd, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    fn remove(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn settle(&mut self, folder: &OwnedFd) -> io::Result<()> {
        match rustix::fs::fsync(folder) {
            // Some file systems have nothing to settle.
            Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
