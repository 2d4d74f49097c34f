//! How often a process tree changes CPUs, counted by the kernel (perf_event_open(2)).

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;

use crate::audit::Note;

/// `struct perf_event_attr` in its first published size (PERF_ATTR_SIZE_VER0), which every kernel takes.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

/// PERF_TYPE_SOFTWARE.
const SOFTWARE: u32 = 1;
/// PERF_COUNT_SW_CPU_MIGRATIONS.
const CPU_MIGRATIONS: u64 = 4;
/// The second bit: children inherit the counter.
const INHERIT: u64 = 1 << 1;
/// PERF_FLAG_FD_CLOEXEC.
const CLOEXEC: libc::c_ulong = 1 << 3;

/// A counter of the calling thread and all that it starts from now on.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// Begins to count.
    ///
    /// # Errors
    ///
    /// EACCES or EPERM where kernel.perf_event_paranoid keeps it from this user: above 1, since the kernel counts
    /// migrations in kernel mode.
    pub fn open() -> nix::Result<Counter> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: SIZE,
            config: CPU_MIGRATIONS,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: INHERIT,
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
        };
        let (this, any_cpu, no_group) = (0 as libc::pid_t, -1 as libc::c_int, -1 as libc::c_int);
        // SAFETY: the kernel reads `size` bytes of the structure, which outlives the call, and writes nothing; the
        // other arguments are plain numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this,
                any_cpu,
                no_group,
                CLOEXEC,
            )
        };
        let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
        // SAFETY: the kernel just made this descriptor for us, and nothing else knows of it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Counter(File::from(fd)))
    }

    /// What was counted, descendants included.
    pub fn read(mut self) -> std::io::Result<u64> {
        let mut value = [0; 8];
        self.0.read_exact(&mut value)?;
        Ok(u64::from_ne_bytes(value))
    }
}

/// What was counted, as a remark.
pub fn note(counter: nix::Result<Counter>) -> Note {
    let text = match counter.map(Counter::read) {
        Ok(Ok(count)) => format!("moves of the command's tree between CPUs: {count}"),
        Ok(Err(error)) => format!("moves between CPUs are not known: {error}"),
        Err(Errno::EACCES | Errno::EPERM) => {
            "moves between CPUs are not counted: kernel.perf_event_paranoid keeps them from this user".into()
        }
        Err(error) => format!("moves between CPUs are not counted: {error}"),
    };
    Note::new("migrations", text)
}
