//! Programs that are started as fast as the machine can.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::ready;

/// A whole program: `exit(0)`. What `true` does is mostly its dynamic linking, of which an emulated machine
/// sustains a dozen a second; that is no storm.
fn least_program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // xor edi, edi; mov eax, 60 (exit); syscall
    const CODE: [u8; 9] = [0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    let size = HEADERS + CODE.len() as u64;
    let mut elf = Vec::new();
    // Elf64_Ehdr (elf(5)): 64 bits, little-endian; an executable for x86-64 with one program header.
    elf.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0");
    for word in [BASE + HEADERS, 64, 0] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 64, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    // Elf64_Phdr: PT_LOAD, readable and executable.
    for word in [1u32, 5] {
        elf.extend(word.to_le_bytes());
    }
    for word in [0, BASE, BASE, size, size, 0x1000] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(CODE);
    elf
}

/// Starts the least program over and over, once per CPU at the same time, and writes down how many there were.
pub fn run(out: &Path, time: Duration) -> Result<()> {
    let program = out.with_extension("program");
    std::fs::write(&program, least_program())?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    // Else nothing but failures would be counted.
    anyhow::ensure!(
        Command::new(&program).status()?.success(),
        "{} does not run",
        program.display()
    );
    ready(&[]);
    let started = AtomicU64::new(0);
    let begin = Instant::now();
    let end = begin + time;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while Instant::now() < end {
                    // Out of processes for the moment: the next round tries again.
                    if Command::new(&program).status().is_ok() {
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let text = format!(
        "{} {:.3}\n",
        started.into_inner(),
        begin.elapsed().as_secs_f64()
    );
    super::write_whole(out, &text)?;
    // The scenario ends it: a scope that empties would be one thing more that happens.
    loop {
        std::thread::park();
    }
}
