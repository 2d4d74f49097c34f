//! Where `/sys` and `/proc` are: the machine's own, or a recorded tree. Nothing below a tree leads out of it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A folder that holds `sys`, `proc` and whatever else is read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    folder: PathBuf,
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct FileError {
    /// The whole path.
    pub path: PathBuf,
    /// What the kernel answered.
    #[source]
    pub error: io::Error,
}

/// Below the root, and along no link.
const STRICTLY: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// How often a lookup is begun anew when a rename beside it kept the kernel from telling whether it stayed inside.
const TRIES: u32 = 16;

impl Root {
    /// `/` for the running machine, else a recorded tree.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root {
            folder: folder.into(),
        }
    }

    /// Whether this is the running machine, not a tree.
    pub fn is_machine(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// The path of a file, for a person; [`Root::read`] and [`Root::open_to_write`] open one.
    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below.trim_start_matches('/'))
    }

    /// A file's text, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read, or is no UTF-8.
    pub fn read(&self, below: &str) -> Result<Option<String>, FileError> {
        let mut text = String::new();
        let read = self
            .open(below, OFlags::RDONLY)
            .and_then(|fd| File::from(fd).read_to_string(&mut text));
        match read {
            Ok(_) => Ok(Some(text)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.error(below, error)),
        }
    }

    /// Whether there is anything of this name.
    pub fn exists(&self, below: &str) -> bool {
        self.open(below, OFlags::PATH).is_ok()
    }

    /// Whether a name is a symbolic link.
    pub fn is_link(&self, below: &str) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.open(below, OFlags::PATH | OFlags::NOFOLLOW)
            .and_then(|fd| File::from(fd).metadata())
            .is_ok_and(|of| of.mode() & nix::libc::S_IFMT == nix::libc::S_IFLNK)
    }

    /// A file's bytes, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read, or is no regular file, or has more than `most` bytes.
    pub fn bytes(&self, below: &str, most: u64) -> Result<Option<Vec<u8>>, FileError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let read = self.open(below, flags).map(File::from).and_then(|file| {
            regular(&file)?;
            let mut bytes = Vec::new();
            file.take(most + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > most {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it has more than {most} bytes"),
                ));
            }
            Ok(bytes)
        });
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.error(below, error)),
        }
    }

    /// A folder that is there, without a symbolic link on the way to it.
    ///
    /// # Errors
    ///
    /// What the kernel answered; ELOOP for a link, EXDEV for a way out of the root.
    pub fn open_folder(&self, below: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.beneath(below, flags, STRICTLY)
    }

    /// A regular file that is there, to be overwritten in its place, where it keeps its blocks. No symbolic link is
    /// followed.
    ///
    /// # Errors
    ///
    /// As [`Root::open_to_write`].
    pub fn open_in_place(&self, below: &str) -> io::Result<File> {
        let file = self.strictly(below, OFlags::RDWR)?;
        regular(&file)?;
        Ok(file)
    }

    /// The names in a folder, sorted; none where there is no such folder.
    ///
    /// # Errors
    ///
    /// The folder is there and cannot be read.
    pub fn names(&self, below: &str) -> Result<Vec<String>, FileError> {
        let folder = match self.open(below, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(folder) => folder,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(self.error(below, error)),
        };
        let wrap = |error: Errno| self.error(below, error.into());
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(wrap)? {
            let entry = entry.map_err(wrap)?;
            // The kernel's names are ASCII; another is none of ours.
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// A regular file that is there, to be written; its contents are gone where it is no kernel's. No symbolic link is
    /// followed on the way, since none is on the way to what the profiles write.
    ///
    /// # Errors
    ///
    /// What the kernel answered; ELOOP for a link, EXDEV for a way out of the root.
    pub fn open_to_write(&self, below: &str) -> io::Result<File> {
        let file = self.strictly(below, OFlags::WRONLY | OFlags::TRUNC)?;
        regular(&file)?;
        Ok(file)
    }

    /// The text of a file that nobody but this process's user could have written.
    ///
    /// # Errors
    ///
    /// As [`Root::read`]; and it belongs to another, is writable by others or behind a link.
    pub fn read_own(&self, below: &str) -> Result<Option<String>, FileError> {
        use std::os::unix::fs::MetadataExt;

        let mut text = String::new();
        let read = self.strictly(below, OFlags::RDONLY).and_then(|mut file| {
            let of = regular(&file)?;
            if of.uid() != rustix::process::geteuid().as_raw() || of.mode() & 0o022 != 0 {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "another user could have written it",
                ));
            }
            file.read_to_string(&mut text)
        });
        match read {
            Ok(_) => Ok(Some(text)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.error(below, error)),
        }
    }

    /// A folder, made where it is not there; no part of it may be a link.
    ///
    /// # Errors
    ///
    /// What the kernel answered.
    pub fn folder(&self, below: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::openat(CWD, &self.folder, flags, Mode::empty())?;
        for name in below.split('/') {
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(folder)
    }

    /// As the file's path and what the kernel answered.
    pub fn error(&self, below: &str, error: io::Error) -> FileError {
        FileError {
            path: self.path(below),
            error,
        }
    }

    /// To be read. A tree is to its links what `/` is to the machine's.
    fn open(&self, below: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        if self.is_machine() {
            // Plainly, so that a report is possible in a sandbox that knows no openat2(2).
            return Ok(rustix::fs::open(self.path(below), flags, Mode::empty())?);
        }
        self.beneath(
            below,
            flags,
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )
    }

    fn strictly(&self, below: &str, flags: OFlags) -> io::Result<File> {
        // A FIFO or terminal in the file's place must not hold us up; it is refused when it is open.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.beneath(below, flags, STRICTLY).map(File::from)
    }

    fn beneath(&self, below: &str, flags: OFlags, resolve: ResolveFlags) -> io::Result<OwnedFd> {
        let root = rustix::fs::open(
            &self.folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut tries = 0;
        loop {
            tries += 1;
            match rustix::fs::openat2(&root, below, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < TRIES => {}
                opened => return Ok(opened?),
            }
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn regular(file: &File) -> io::Result<std::fs::Metadata> {
    let of = file.metadata()?;
    if of.is_file() {
        return Ok(of);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "this is no regular file",
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("proc")).expect("a folder");
        std::fs::write(folder.path().join("proc/swaps"), "none\n").expect("a file");
        let root = Root::new(folder.path());
        assert_eq!(
            root.read("proc/swaps").expect("it reads").as_deref(),
            Some("none\n")
        );
        assert_eq!(root.read("sys/none").expect("it reads"), None);
        assert_eq!(root.names(".").expect("the root"), ["proc"]);
        assert!(root.names("sys").expect("no folder").is_empty());
        let error = root.read("proc").expect_err("a folder is no file");
        assert!(error.to_string().contains("proc: "), "{error}");
    }

    #[test]
    fn nothing_below_a_tree_leads_out_of_it() {
        let outside = tempfile::tempdir().expect("a folder");
        std::fs::write(outside.path().join("knob"), "theirs\n").expect("a file");
        let inside = tempfile::tempdir().expect("a folder");
        let at = |name: &str| inside.path().join(name);
        std::fs::create_dir_all(at("sys/real")).expect("folders");
        std::fs::write(at("sys/real/knob"), "ours\n").expect("a file");
        symlink(outside.path().join("knob"), at("sys/file")).expect("a link");
        symlink(outside.path(), at("sys/folder")).expect("a link");
        symlink("/sys/real", at("sys/absolute")).expect("a link");
        symlink("real", at("sys/relative")).expect("a link");
        let up = format!("../..{}/knob", outside.path().display());
        let root = Root::new(inside.path());

        // Read: a link counts from the tree's own root, and `..` stops there.
        assert_eq!(root.read("sys/file").expect("nothing"), None);
        assert_eq!(root.read("sys/folder/knob").expect("nothing"), None);
        assert_eq!(root.read(&up).expect("nothing"), None);
        for link in ["absolute", "relative"] {
            let text = root.read(&format!("sys/{link}/knob")).expect("it reads");
            assert_eq!(text.as_deref(), Some("ours\n"), "{link}");
        }

        // Written: no link at all, and no way up.
        for path in [
            "sys/file",
            "sys/folder/knob",
            "sys/relative/knob",
            "sys/absolute/knob",
        ] {
            let error = root.open_to_write(path).expect_err(path);
            assert_eq!(error.raw_os_error(), Some(nix::libc::ELOOP), "{path}");
        }
        let absolute = outside.path().join("knob").display().to_string();
        for path in [up.as_str(), absolute.as_str()] {
            let error = root.open_to_write(path).expect_err(path);
            assert_eq!(error.raw_os_error(), Some(nix::libc::EXDEV), "{path}");
        }
        assert!(root.folder("sys/folder/new").is_err(), "a link in the way");
        assert!(!outside.path().join("new").exists());
        let left = std::fs::read_to_string(outside.path().join("knob")).expect("a file");
        assert_eq!(left, "theirs\n");
    }

    #[test]
    fn what_is_no_file_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::new(folder.path());
        let pipe = folder.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        // Nobody reads from it: it would be an endless wait.
        root.open_to_write("pipe").expect_err("a pipe");
        root.open_to_write("none").expect_err("no file is made");
        assert!(!folder.path().join("none").exists());
    }

    #[test]
    fn a_file_that_others_could_have_written_is_not_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "text").expect("a file");
        let mode = |mode| std::fs::set_permissions(&file, Permissions::from_mode(mode));
        let root = Root::new(folder.path());
        mode(0o600).expect("a mode");
        assert_eq!(
            root.read_own("file").expect("ours").as_deref(),
            Some("text")
        );
        mode(0o620).expect("a mode");
        root.read_own("file").expect_err("the group could");
        symlink("file", folder.path().join("link")).expect("a link");
        root.read_own("link").expect_err("a link");
        assert_eq!(root.read_own("none").expect("nothing"), None);
    }
}
