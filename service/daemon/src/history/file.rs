//! A file of lines: appended to so that a crash, or a disk that is full, costs no line but the one at hand, and
//! kept within bounds.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use guard_insight::history::{MAX_BYTES, retained};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use crate::disk;

/// Lines that wait for a disk that takes them: a day's.
const MAX_WAITING: usize = 288;
/// Of a file that somebody else let grow, only so much of its end is looked at.
const MAX_READ: u64 = 2 * MAX_BYTES as u64;

/// The one writer of the file.
pub struct HistoryFile {
    /// None where the user has no home: then the lines of this run are all there is.
    path: Option<PathBuf>,
    waiting: VecDeque<Vec<u8>>,
    problem: Option<String>,
}

impl HistoryFile {
    /// `name` in `folder`, which is made with the first line.
    pub fn new(folder: Option<&Path>, name: &str) -> HistoryFile {
        HistoryFile {
            path: folder.map(|folder| folder.join(name)),
            waiting: VecDeque::new(),
            problem: None,
        }
    }

    /// Appends lines, and those that could not be written before.
    pub fn append(&mut self, lines: impl IntoIterator<Item = Vec<u8>>) {
        self.waiting.extend(lines);
        let late = self.waiting.len().saturating_sub(MAX_WAITING);
        self.waiting.drain(..late);
        if self.waiting.is_empty() {
            return;
        }
        let Some(path) = &self.path else { return };
        match write(path, &self.waiting).and_then(|()| trim(path)) {
            Ok(()) => {
                self.waiting.clear();
                if self.problem.take().is_some() {
                    log::info!("{} can be written again", path.display());
                }
            }
            Err(error) => {
                let problem = format!("{}: {error}", path.display());
                // Once for each cause, not at each try.
                if self.problem.as_ref() != Some(&problem) {
                    log::warn!("the history cannot be written: {problem}; lines wait in memory");
                    self.problem = Some(problem);
                }
            }
        }
    }

    /// All of it, with what waits.
    pub fn text(&self) -> Vec<u8> {
        let mut text = match &self.path {
            Some(path) => read_end(path).unwrap_or_else(|error| {
                log::warn!("{} cannot be read: {error}", path.display());
                Vec::new()
            }),
            None => Vec::new(),
        };
        text.push(b'\n');
        text.extend(self.waiting.iter().flatten());
        text
    }

    /// Why the last line could not be written, while it is so.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// A regular file of the user's, not through a link: what else is in its place is not the guard's.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options
        .mode(0o600)
        .custom_flags(O_NONBLOCK | O_NOFOLLOW)
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != fs::metadata("/proc/self")?.uid() {
        return Err(io::Error::other("it is no regular file of this user"));
    }
    Ok(file)
}

fn write(path: &Path, lines: &VecDeque<Vec<u8>>) -> io::Result<()> {
    let folder = path.parent().expect("the path has a folder");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut file = open(
        path,
        OpenOptions::new().read(true).append(true).create(true),
    )?;
    let before = file.metadata()?.len();
    let mut text = Vec::new();
    if before > 0 {
        // A line that a crash tore ends here, and takes the next one not with it.
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push(b'\n');
        }
    }
    text.extend(lines.iter().flatten());
    let written = file.write_all(&text).and_then(|()| file.sync_data());
    if written.is_err() {
        // The half that fitted would be torn lines, and be there twice when it is tried again.
        let _ = file.set_len(before);
    }
    written
}

/// Drops the oldest lines of a file that has grown past its bounds.
fn trim(path: &Path) -> io::Result<()> {
    let text = read_end(path)?;
    match retained(&text) {
        Some(kept) => disk::write(path, kept),
        None => Ok(()),
    }
}

/// The file, or its end where it is far larger than it should be.
fn read_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length > MAX_READ {
        file.seek(SeekFrom::Start(length - MAX_READ))?;
    }
    file.take(MAX_READ).read_to_end(&mut text)?;
    if length > MAX_READ {
        let first = text
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(text.len(), |at| at + 1);
        text.drain(..first);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use guard_insight::history::{History, MAX_LINES};

    use super::*;

    fn line(ts: u64) -> Vec<u8> {
        format!("{{\"ts\":{ts}}}\n").into_bytes()
    }

    fn at(folder: &Path) -> HistoryFile {
        HistoryFile::new(Some(folder), "history.jsonl")
    }

    fn read(file: &HistoryFile) -> History {
        History::parse(&file.text())
    }

    fn stamps(file: &HistoryFile) -> Vec<u64> {
        read(file)
            .snapshots
            .iter()
            .map(|snapshot| snapshot.ts)
            .collect()
    }

    #[test]
    fn lines_come_back_and_are_the_users_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("new");
        let mut file = at(&state);
        assert!(stamps(&file).is_empty());
        file.append([line(1)]);
        file.append([line(2)]);
        assert_eq!(stamps(&file), [1, 2]);
        assert_eq!(stamps(&at(&state)), [1, 2]);
        let mode = fs::metadata(state.join("history.jsonl"))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // Without a home the lines of this run are there all the same.
        let mut homeless = HistoryFile::new(None, "history.jsonl");
        homeless.append([line(3)]);
        assert_eq!(stamps(&homeless), [3]);
    }

    #[test]
    fn a_torn_last_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let mut text = line(1);
        text.extend(b"{\"ts\":2,\"rou");
        fs::write(&path, text).expect("written");
        let mut file = at(folder.path());
        file.append([line(3)]);
        assert_eq!(stamps(&file), [1, 3]);
        assert_eq!(read(&file).skipped, 1);
    }

    #[test]
    fn what_could_not_be_written_waits_and_is_there_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let mut file = at(&state);
        file.append([line(1)]);
        // A folder in the file's place, as something that cannot be written; root heeds no permissions.
        let path = state.join("history.jsonl");
        fs::rename(&path, state.join("aside")).expect("renamed");
        fs::create_dir(&path).expect("made");
        file.append([line(2)]);
        file.append([line(3)]);
        assert!(file.problem().expect("a problem").contains("history.jsonl"));
        assert_eq!(stamps(&file), [2, 3]);
        fs::remove_dir(&path).expect("removed");
        fs::rename(state.join("aside"), &path).expect("renamed");
        file.append([line(4)]);
        assert_eq!(file.problem(), None);
        assert_eq!(stamps(&file), [1, 2, 3, 4]);
        for n in 0..2 * MAX_WAITING as u64 {
            let mut homeless = HistoryFile::new(None, "history.jsonl");
            homeless.append([line(n)]);
            assert!(homeless.waiting.len() <= MAX_WAITING);
        }
    }

    /// Set in the process that may not write large files, which is another one: the limit is the process's.
    const LIMITED: &str = "WORKLOAD_GUARD_TEST_LIMITED";

    #[test]
    fn a_disk_that_fills_up_in_the_middle_of_a_line_loses_none_before() {
        if std::env::var_os(LIMITED).is_some() {
            return with_a_full_disk();
        }
        let this = std::env::current_exe().expect("a path");
        let name =
            "history::file::tests::a_disk_that_fills_up_in_the_middle_of_a_line_loses_none_before";
        let out = std::process::Command::new(this)
            .args(["--exact", name])
            .env(LIMITED, "1")
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.contains("1 passed"), "{text}");
    }

    fn with_a_full_disk() {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        use nix::sys::signal::{SigHandler, Signal, signal};
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = at(folder.path());
        file.append([line(1)]);
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.expect("ignored");
        let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).expect("a limit");
        setrlimit(Resource::RLIMIT_FSIZE, line(1).len() as u64 + 4, hard).expect("set");
        file.append([line(2)]);
        let during = fs::read(folder.path().join("history.jsonl")).expect("read");
        setrlimit(Resource::RLIMIT_FSIZE, soft, hard).expect("set back");
        assert!(file.problem().is_some());
        assert_eq!(during, line(1));
        file.append([line(3)]);
        assert_eq!(stamps(&file), [1, 2, 3]);
        assert_eq!(read(&file).skipped, 0);
    }

    #[test]
    fn a_link_and_a_pipe_in_its_place_are_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let target = folder.path().join("target");
        fs::write(&target, "mine\n").expect("written");
        std::os::unix::fs::symlink(&target, &path).expect("linked");
        let mut file = at(folder.path());
        file.append([line(1)]);
        assert!(file.problem().is_some());
        assert_eq!(fs::read(&target).expect("read"), b"mine\n");
        fs::remove_file(&path).expect("removed");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
        file.append([line(2)]);
        assert!(file.problem().is_some());
        assert_eq!(stamps(&file), [1, 2]);
    }

    #[test]
    fn a_file_that_has_grown_is_cut_at_its_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let many: Vec<u8> = (0..MAX_LINES as u64).flat_map(line).collect();
        fs::write(&path, many).expect("written");
        let mut file = at(folder.path());
        file.append([line(9_999_999)]);
        let kept = stamps(&file);
        assert_eq!(
            (kept.len(), kept.last()),
            (MAX_LINES / 8 * 7, Some(&9_999_999))
        );
        // One of another program, far too large: its end is what counts.
        let huge: Vec<u8> = (0..600_000u64).flat_map(line).collect();
        assert!(huge.len() as u64 > MAX_READ);
        fs::write(&path, huge).expect("written");
        assert_eq!(stamps(&file).last(), Some(&599_999));
        file.append([line(600_000)]);
        assert_eq!(stamps(&file).last(), Some(&600_000));
        assert!(fs::metadata(&path).expect("there").len() < MAX_BYTES as u64);
    }
}
