//! GRUB's environment block: 1,024 bytes that it reads, and writes in place, at boot.

use std::fmt;

/// The size that GRUB insists on where the file has no other.
const SIZE: usize = 1024;
const SIGNATURE: &[u8] = b"# GRUB Environment Block\n";
/// The variable that names the entry of the next boot alone.
pub const NEXT: &str = "next_entry";

/// Why the block cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvError(&'static str);

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for EnvError {}

/// The value of a variable.
///
/// # Errors
///
/// This is no environment block.
pub fn get(block: &[u8], name: &str) -> Result<Option<String>, EnvError> {
    let prefix = format!("{name}=");
    Ok(lines(block)?
        .find_map(|line| line.strip_prefix(prefix.as_bytes()))
        .map(|value| String::from_utf8_lossy(&unescaped(value)).into_owned()))
}

/// The block with a variable set, or without it; as long as it was.
///
/// # Errors
///
/// This is no environment block, or it is full.
pub fn set(block: &[u8], name: &str, value: Option<&str>) -> Result<Vec<u8>, EnvError> {
    let prefix = format!("{name}=");
    let mut new = SIGNATURE.to_vec();
    for line in lines(block)?.filter(|line| !line.starts_with(prefix.as_bytes())) {
        new.extend_from_slice(line);
        new.push(b'\n');
    }
    if let Some(value) = value {
        new.extend_from_slice(prefix.as_bytes());
        new.extend(escaped(value));
        new.push(b'\n');
    }
    if new.len() > block.len() {
        return Err(EnvError(
            "GRUB's environment block is full: `grub-editenv - list` shows what is in it",
        ));
    }
    new.resize(block.len(), b'#');
    Ok(new)
}

/// The lines with variables. A backslash keeps what follows, a line's end too.
fn lines(block: &[u8]) -> Result<impl Iterator<Item = &[u8]>, EnvError> {
    let body = block
        .strip_prefix(SIGNATURE)
        .filter(|_| block.len() >= SIZE)
        .ok_or(EnvError(
            "this is no environment block of GRUB: `grub-editenv FILE create` makes one",
        ))?;
    let mut lines = Vec::new();
    let mut start = 0;
    let mut kept = false;
    for (at, byte) in body.iter().enumerate() {
        match byte {
            _ if kept => kept = false,
            b'\\' => kept = true,
            // What is left of the block is filled with these.
            b'#' if at == start => break,
            b'\n' => {
                lines.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    Ok(lines.into_iter().filter(|line| !line.is_empty()))
}

fn escaped(value: &str) -> Vec<u8> {
    let mut escaped = Vec::new();
    for byte in value.bytes() {
        if matches!(byte, b'\\' | b'\n') {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    escaped
}

fn unescaped(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut kept = false;
    for &byte in value {
        if byte == b'\\' && !kept {
            kept = true;
        } else {
            plain.push(byte);
            kept = false;
        }
    }
    plain
}
