//! The words of a kernel command line.

/// Words between blanks; a double quote keeps blanks together (`next_arg` in the kernel's lib/cmdline.c).
pub fn split(line: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = None;
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        quoted ^= c == '"';
        if c.is_ascii_whitespace() && !quoted {
            if let Some(start) = start.take() {
                tokens.push(&line[start..at]);
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    tokens.extend(start.map(|start| &line[start..]));
    tokens
}

/// A parameter's name. The kernel takes dashes for underscores in it (`parameqn`); systemd does too.
pub fn name(token: &str) -> String {
    let name = token.split_once('=').map_or(token, |(name, _)| name);
    name.trim_start_matches('"').replace('-', "_")
}
