//! The conversation with the agent in the guest. Pure.
//!
//! A request is one line: `TOKEN SECONDS WORD…`, the words quoted for bash. The answer is the line
//! `\x1eTOKEN begin`, then the command's raw output, then `\x1eTOKEN end STATUS`. The token is random and new for
//! each request, so no output can be taken for a frame.

use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Starts a frame: ASCII's record separator.
const SEPARATOR: u8 = 0x1e;

/// The request line for `argv`, to be killed after `timeout` of the guest's time.
///
/// # Errors
/// An empty `argv`, or a NUL byte in it, which no program can be given.
pub fn request(token: &str, timeout: Duration, argv: &[&str]) -> Result<String> {
    if argv.is_empty() {
        bail!("no command to run in the machine");
    }
    // Zero would mean "no limit" to timeout(1).
    let seconds = timeout.as_secs_f64().max(0.001);
    let mut line = format!("{token} {seconds:.3}");
    for word in argv {
        if word.contains('\0') {
            bail!("a NUL byte in an argument: {word:?}");
        }
        line.push(' ');
        push_quoted(&mut line, word);
    }
    line.push('\n');
    Ok(line)
}

/// As bash's `$'…'`, in plain ASCII without line ends.
fn push_quoted(line: &mut String, word: &str) {
    line.push_str("$'");
    for &byte in word.as_bytes() {
        match byte {
            b'\'' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b' '..=b'~' => line.push(char::from(byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
    }
    line.push('\'');
}

/// Takes the answer to one request apart as it comes in, in pieces of any size.
#[derive(Debug)]
pub struct Answer {
    begin: Vec<u8>,
    end: Vec<u8>,
    begun: bool,
    /// Bytes that may be the start of a frame, or the frame's unfinished last line.
    pending: Vec<u8>,
}

impl Answer {
    /// For the request with this token.
    pub fn to(token: &str) -> Self {
        let mark = |word: &str| [&[SEPARATOR], token.as_bytes(), word.as_bytes()].concat();
        Self {
            begin: mark(" begin\n"),
            end: mark(" end "),
            begun: false,
            pending: Vec::new(),
        }
    }

    /// Whether the guest has started the command.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes the next bytes, gives the command's output in them to `sink`, and returns its exit status once it is there.
    ///
    /// What comes before the begin frame is dropped: it is a leftover process of an earlier command talking.
    ///
    /// # Errors
    /// An end frame without a number.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<Option<i32>> {
        self.pending.extend_from_slice(bytes);
        if !self.begun {
            let Some(at) = find(&self.pending, &self.begin) else {
                let dropped = self.pending.len() - possible_start(&self.pending, &self.begin);
                self.pending.drain(..dropped);
                return Ok(None);
            };
            self.pending.drain(..at + self.begin.len());
            self.begun = true;
        }
        let Some(at) = find(&self.pending, &self.end) else {
            let output = self.pending.len() - possible_start(&self.pending, &self.end);
            give(&self.pending[..output], sink);
            self.pending.drain(..output);
            return Ok(None);
        };
        give(&self.pending[..at], sink);
        self.pending.drain(..at);
        let status = &self.pending[self.end.len()..];
        let Some(length) = status.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&status[..length]);
        let status = text
            .parse()
            .with_context(|| format!("the machine's agent sent {text:?} as exit status"))?;
        Ok(Some(status))
    }
}

fn give(output: &[u8], sink: &mut dyn FnMut(&[u8])) {
    if !output.is_empty() {
        sink(output);
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// How many bytes at the end of `bytes` may be the start of `mark`.
fn possible_start(bytes: &[u8], mark: &[u8]) -> usize {
    let longest = bytes.len().min(mark.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| mark.starts_with(&bytes[bytes.len() - length..]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123abcd";

    fn feed_all(pieces: &[&[u8]]) -> (Vec<u8>, Option<i32>) {
        let mut answer = Answer::to(TOKEN);
        let mut output = Vec::new();
        let mut status = None;
        for piece in pieces {
            status = answer
                .feed(piece, &mut |bytes| output.extend_from_slice(bytes))
                .unwrap();
        }
        (output, status)
    }

    #[test]
    fn a_whole_answer_in_any_cut() {
        let answer =
            b"stray\x1e0123abcd begin\none\ntw\x1e0123abcd  \x1e\x1eo\x1e0123abcd end 130\n";
        for size in 1..=answer.len() {
            let pieces: Vec<&[u8]> = answer.chunks(size).collect();
            let (output, status) = feed_all(&pieces);
            assert_eq!(
                String::from_utf8_lossy(&output),
                "one\ntw\x1e0123abcd  \x1e\x1eo",
                "pieces of {size}"
            );
            assert_eq!(status, Some(130), "pieces of {size}");
        }
    }

    #[test]
    fn output_is_not_held_back() {
        let (output, status) = feed_all(&[b"\x1e0123abcd begin\nprompt> "]);
        assert_eq!((output.as_slice(), status), (b"prompt> ".as_slice(), None));
        let (output, _) = feed_all(&[b"\x1e0123abcd begin\nx\x1e012"]);
        assert_eq!(output, b"x");
    }

    #[test]
    fn frames_of_another_token_are_output() {
        let (output, status) = feed_all(&[b"\x1e0123abcd begin\n\x1effff0000 end 0\n"]);
        assert_eq!(
            (output.as_slice(), status),
            (b"\x1effff0000 end 0\n".as_slice(), None)
        );
    }

    #[test]
    fn a_status_that_is_no_number_is_an_error() {
        let mut answer = Answer::to(TOKEN);
        let error = answer
            .feed(b"\x1e0123abcd begin\n\x1e0123abcd end x\n", &mut |_| {})
            .unwrap_err();
        assert!(error.to_string().contains("\"x\""), "{error:#}");
    }

    #[test]
    fn bash_reads_back_any_word() {
        let words = [
            "it's",
            "a\\",
            "\n\t\u{1}\u{7f}",
            "",
            "$(x) `y` \"z\" *",
            "é∞",
            "-n",
        ];
        let line = request(TOKEN, Duration::from_millis(1500), &words).unwrap();
        assert!(
            line.is_ascii() && line.matches('\n').count() == 1,
            "{line:?}"
        );
        let rest = line.strip_prefix("0123abcd 1.500 ").unwrap();
        let output = std::process::Command::new("bash")
            .args([
                "-c",
                "IFS= read -r quoted; eval \"argv=($quoted)\"; printf '%s\\0' \"${argv[@]}\"",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .and_then(|mut child| {
                use std::io::Write as _;
                child.stdin.take().unwrap().write_all(rest.as_bytes())?;
                child.wait_with_output()
            })
            .unwrap();
        let read: Vec<&str> = std::str::from_utf8(&output.stdout)
            .unwrap()
            .split_terminator('\0')
            .collect();
        assert_eq!(read, words);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        assert!(request(TOKEN, Duration::from_secs(1), &[]).is_err());
        assert!(request(TOKEN, Duration::from_secs(1), &["a\0b"]).is_err());
        assert!(
            request(TOKEN, Duration::ZERO, &["true"])
                .unwrap()
                .starts_with("0123abcd 0.001 ")
        );
    }
}
