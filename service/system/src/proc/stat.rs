//! The line of `/proc/PID/stat` and `/proc/PID/task/TID/stat` (proc_pid_stat(5)).

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: no user address space.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Real-time policies of `include/uapi/linux/sched.h`: `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
const REALTIME_POLICIES: [u32; 3] = [1, 2, 6];

/// What is taken from the line. Plain numbers, so that reading it allocates nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Name of the program or thread as the kernel keeps it, cut at 16 bytes, padded with zeros.
    pub comm: [u8; 16],
    /// `R`, `S`, `D`, `Z` and the like.
    pub state: u8,
    /// PID of the parent; 0 for the first process and for kernel threads' root.
    pub ppid: u32,
    /// PID of the session's leader.
    pub session: u32,
    /// Device number of the controlling terminal; 0 when there is none.
    pub tty_nr: i32,
    /// The kernel's `PF_*` flags.
    pub flags: u64,
    /// User and system time of all threads so far, in clock ticks.
    pub cpu_ticks: u64,
    /// User and system time of ended children that were waited for, with theirs, in clock ticks.
    pub reaped_ticks: u64,
    /// Threads of the process.
    pub threads: u32,
    /// Start time in clock ticks after boot.
    pub start: u64,
    /// Scheduling policy (`SCHED_*`) of this thread.
    pub policy: u32,
    /// Where the program lies in memory.
    pub image: Image,
}

/// Addresses that exec lays out anew, so that a change of them tells of an exec without a look at the
/// command line. All zero for processes that the reader may not trace, and for kernel threads.
///
/// The kernel places them at random (`randomize_va_space`), with 22 bits or more for the stack alone on
/// 64-bit machines; a process that moves its own arguments (setproctitle) changes them as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Field 26, `startcode`.
    pub start_code: u64,
    /// Field 28, `startstack`.
    pub start_stack: u64,
    /// Field 48, `arg_start`.
    pub arg_start: u64,
    /// Field 49, `arg_end`.
    pub arg_end: u64,
    /// Field 51, `env_end`.
    pub env_end: u64,
}

impl Stat {
    /// Parses a whole line. `None` when it is not one.
    ///
    /// The name may hold blanks, parentheses and newlines, but nothing after it does: it ends at the
    /// last `)`.
    pub fn parse(line: &[u8]) -> Option<Stat> {
        let open = line.iter().position(|&b| b == b'(')?;
        let close = line.iter().rposition(|&b| b == b')')?;
        let name = line.get(open + 1..close)?;
        let mut stat = Stat::default();
        let kept = name.len().min(stat.comm.len());
        stat.comm[..kept].copy_from_slice(&name[..kept]);

        let mut last = 0;
        let fields = line.get(close + 2..)?.split(|&b| b == b' ');
        for (number, field) in (3u32..).zip(fields) {
            last = number;
            match number {
                3 => stat.state = *field.first()?,
                4 => stat.ppid = unsigned(field)? as u32,
                6 => stat.session = signed(field)? as u32,
                7 => stat.tty_nr = signed(field)? as i32,
                9 => stat.flags = unsigned(field)?,
                14 | 15 => stat.cpu_ticks += unsigned(field)?,
                // Signed in the kernel's words, never negative.
                16 | 17 => stat.reaped_ticks += unsigned(field)?,
                20 => stat.threads = unsigned(field)? as u32,
                22 => stat.start = unsigned(field)?,
                26 => stat.image.start_code = unsigned(field)?,
                28 => stat.image.start_stack = unsigned(field)?,
                41 => stat.policy = unsigned(field)? as u32,
                48 => stat.image.arg_start = unsigned(field)?,
                49 => stat.image.arg_end = unsigned(field)?,
                51 => {
                    stat.image.env_end = unsigned(field)?;
                    break;
                }
                _ => {}
            }
        }
        (last == 51).then_some(stat)
    }

    /// User and system time of all threads so far, in microseconds.
    pub fn cpu_usec(&self) -> u64 {
        self.cpu_ticks * 1_000_000 / procfs::ticks_per_second()
    }

    /// User and system time of ended children that were waited for, with theirs, in microseconds.
    pub fn reaped_usec(&self) -> u64 {
        self.reaped_ticks * 1_000_000 / procfs::ticks_per_second()
    }

    /// It has no user address space.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// It has ended, and only its exit status is left. A process whose first thread alone has ended
    /// shows `Z` too, yet its other threads live on.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// This thread's policy is `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub fn is_realtime(&self) -> bool {
        REALTIME_POLICIES.contains(&self.policy)
    }

    /// [`Stat::comm`] as text.
    pub fn comm(&self) -> std::borrow::Cow<'_, str> {
        let end = self
            .comm
            .iter()
            .position(|&b| b == 0)
            .unwrap_or(self.comm.len());
        String::from_utf8_lossy(&self.comm[..end])
    }
}

impl Image {
    /// The reader was allowed to see it.
    pub fn is_visible(&self) -> bool {
        self.arg_start != 0
    }
}

/// A decimal number; `None` on anything else or on overflow.
pub(crate) fn unsigned(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |n, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A decimal number with an optional sign.
fn signed(field: &[u8]) -> Option<i64> {
    match field.strip_prefix(b"-") {
        Some(digits) => Some(-i64::try_from(unsigned(digits)?).ok()?),
        None => i64::try_from(unsigned(field)?).ok(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A line as the kernel writes it, for a process that sleeps.
    pub(crate) fn line(
        pid: u32,
        comm: &str,
        ppid: u32,
        ticks: (u64, u64),
        start: u64,
        arg_start: u64,
    ) -> String {
        format!(
            "{pid} ({comm}) S {ppid} {pid} 77 34816 -1 4194304 121 0 0 0 {} {} 5 6 20 0 3 0 {start} 2998272 226 \
             18446744073709551615 94093128880128 94093128901017 140728394587008 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 \
             94093128914480 94093128915904 94093145321472 {arg_start} {} {} {} 0\n",
            ticks.0,
            ticks.1,
            arg_start + 11,
            arg_start + 11,
            arg_start + 900,
        )
    }

    #[test]
    fn each_field_is_the_one_of_the_manual() {
        let stat =
            Stat::parse(line(42, "sleep", 7, (100, 23), 5555, 140_728_394_590_001).as_bytes())
                .unwrap();
        assert_eq!(stat.comm(), "sleep");
        assert_eq!(
            (stat.state, stat.ppid, stat.session, stat.tty_nr),
            (b'S', 7, 77, 34816)
        );
        assert_eq!((stat.cpu_ticks, stat.threads, stat.start), (123, 3, 5555));
        assert_eq!(stat.reaped_ticks, 5 + 6);
        assert_eq!(
            stat.cpu_usec(),
            123 * 1_000_000 / procfs::ticks_per_second()
        );
        assert_eq!(
            stat.image,
            Image {
                start_code: 94_093_128_880_128,
                start_stack: 140_728_394_587_008,
                arg_start: 140_728_394_590_001,
                arg_end: 140_728_394_590_012,
                env_end: 140_728_394_590_901,
            }
        );
        assert!(!stat.is_kernel_thread() && !stat.is_dead() && !stat.is_realtime());
    }

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        for comm in [
            "a) R 1 2 3 (",
            "x\n1 (y) Z 9",
            "((((",
            "))))",
            " ",
            "",
            "(sd-pam)",
        ] {
            let stat = Stat::parse(line(42, comm, 7, (1, 2), 5555, 140_000).as_bytes()).unwrap();
            assert_eq!(
                (stat.state, stat.ppid, stat.start, stat.cpu_ticks),
                (b'S', 7, 5555, 3),
                "{comm:?}"
            );
            assert_eq!(stat.comm(), comm);
        }
    }

    #[test]
    fn policy_and_flags_are_told_apart_from_their_neighbours() {
        let text = line(42, "rt", 7, (1, 2), 5555, 140_000)
            .replace(" 4194304 ", " 69238848 ")
            .replace(" 17 1 0 0 0", " 17 1 50 1 0");
        let stat = Stat::parse(text.as_bytes()).unwrap();
        assert!(stat.is_kernel_thread() && stat.is_realtime());
        assert_eq!(stat.policy, 1);
    }

    #[test]
    fn a_dead_first_thread_is_not_a_dead_process() {
        let zombie = line(42, "x", 7, (1, 2), 5, 1).replace(") S ", ") Z ");
        assert!(!Stat::parse(zombie.as_bytes()).unwrap().is_dead());
        let zombie = zombie.replace(" 20 0 3 0 ", " 20 0 1 0 ");
        assert!(Stat::parse(zombie.as_bytes()).unwrap().is_dead());
    }

    #[test]
    fn a_torn_line_is_refused() {
        let whole = line(42, "sleep", 7, (1, 2), 5555, 140_000);
        for cut in [0, 1, 5, 20, 100, 200] {
            assert_eq!(Stat::parse(&whole.as_bytes()[..cut]), None, "{cut}");
        }
        assert_eq!(Stat::parse(b"42 (x) S x y z"), None);
    }
}
