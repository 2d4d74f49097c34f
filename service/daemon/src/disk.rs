//! Small files of the guard: read whole, written whole, for the user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

/// Far above what the guard writes: a larger file is none of its own.
const MAX_BYTES: u64 = 4 << 20;

/// The content of a file, or `None` when there is none.
///
/// # Errors
///
/// It cannot be read, or is no file that the guard can have written.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // A FIFO in its place would hold up the start for ever, and a link lead anywhere.
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(O_NOFOLLOW | O_NONBLOCK)
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Who may write there but is not the user would decide what is remembered.
    let user = fs::metadata("/proc/self")?.uid();
    if about.uid() != user {
        return Err(io::Error::other(format!(
            "it belongs to user {}",
            about.uid()
        )));
    }
    if about.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write it"));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_BYTES} bytes"
        )));
    }
    Ok(Some(text))
}

/// Puts a file that cannot be used beside its place. Answers what became of it, in words.
pub fn set_aside(path: &Path) -> String {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".unreadable");
    // An older one goes; a folder takes no file's place, nor a file a folder's.
    if fs::remove_file(&aside).is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    match fs::rename(path, &aside) {
        Ok(()) => format!("kept as {}", Path::new(&aside).display()),
        Err(error) => format!("left in place: {error}"),
    }
}

/// Writes a file, with its folder: whoever reads it sees all of it or what was there before.
///
/// # Errors
///
/// Those of the system; what was there before is there still.
pub fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("the path has a folder");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let new = path.with_extension("json.new");
    // A half of an earlier write, or a FIFO that would hold up the loop for ever.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // A torn half would only take the room that is missing.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Removes a file; one that is not there is no error.
///
/// # Errors
///
/// Those of the system.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_the_users_alone_and_comes_back_whole() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("new/a.json");
        assert_eq!(read(&path)?, None);
        write(&path, b"one")?;
        write(&path, b"two")?;
        assert_eq!(read(&path)?.as_deref(), Some(&b"two"[..]));
        let mode = |path: &Path| fs::metadata(path).map(|about| about.permissions().mode() & 0o777);
        assert_eq!(
            (mode(&path)?, mode(&folder.path().join("new"))?),
            (0o600, 0o700)
        );
        Ok(())
    }

    #[test]
    fn what_the_guard_cannot_have_written_is_refused_at_once() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let fifo = folder.path().join("fifo.json");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
        assert!(read(&fifo).is_err());
        assert!(read(folder.path()).is_err());
        let open = folder.path().join("open.json");
        write(&open, b"{}")?;
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&open, &link)?;
        assert!(read(&open)?.is_some() && read(&link).is_err());
        fs::set_permissions(&open, fs::Permissions::from_mode(0o620))?;
        assert!(read(&open).is_err());
        // Nor does one where the new file is written hold anything up.
        fs::rename(&fifo, open.with_extension("json.new"))?;
        write(&open, b"[]")?;
        assert_eq!(read(&open)?.as_deref(), Some(&b"[]"[..]));
        let large = folder.path().join("large.json");
        File::create(&large)?.set_len(MAX_BYTES + 1)?;
        assert!(read(&large).is_err());
        assert!(set_aside(&large).ends_with("large.json.unreadable"));
        assert_eq!(read(&large)?, None);
        fs::create_dir(&large)?;
        assert!(set_aside(&large).ends_with("large.json.unreadable"));
        write(&large, b"{}")?;
        Ok(())
    }
}
