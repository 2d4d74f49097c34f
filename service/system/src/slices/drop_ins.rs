//! Hears that somebody changed a property of a slice.
//!
//! systemd sends no PropertiesChanged for resource settings (measured on 252, 257 and 262: its table of
//! properties does not mark them), and `systemctl` talks to it past the bus. But whoever sets one leaves a
//! drop-in, written before the call is answered: so the folders of those are watched.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use async_io::Async;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// Of a folder that holds drop-ins.
const CONTENT: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_ONLYDIR);
/// Of a folder in which the next one of a path may appear.
const WAY: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_ONLYDIR);

/// Watches folders of drop-ins, also those that do not exist yet.
#[derive(Debug)]
pub struct DropIns {
    inotify: Async<Inotify>,
    folders: Vec<PathBuf>,
    watches: HashMap<WatchDescriptor, PathBuf>,
}

impl DropIns {
    /// The folders that SetUnitProperties writes for a unit of the user manager, for now and for good:
    /// `runtime` is `$XDG_RUNTIME_DIR`, `config` is `$XDG_CONFIG_HOME`.
    pub fn of_unit(runtime: &Path, config: &Path, unit: &str) -> io::Result<DropIns> {
        let folder = |base: &Path| base.join("systemd/user.control").join(format!("{unit}.d"));
        DropIns::new(vec![folder(runtime), folder(config)])
    }

    fn new(folders: Vec<PathBuf>) -> io::Result<DropIns> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let mut drop_ins = DropIns {
            inotify: Async::new_nonblocking(inotify)?,
            folders,
            watches: HashMap::new(),
        };
        drop_ins.watch()?;
        Ok(drop_ins)
    }

    /// Waits until a drop-in may have changed. It may be one that sets something else.
    ///
    /// # Errors
    ///
    /// When nothing can be watched any more, such as after `fs.inotify.max_user_watches`.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            self.inotify.readable().await?;
            if self.take_events()? {
                return Ok(());
            }
        }
    }

    /// Whether what is waiting to be read concerns a drop-in.
    fn take_events(&mut self) -> io::Result<bool> {
        let mut concerns = false;
        loop {
            let events = match self.inotify.get_ref().read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            for event in events {
                // An overflow names no watch: anything may have happened.
                let Some(folder) = self.watches.get(&event.wd) else {
                    concerns |= event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                    continue;
                };
                let name = event.name.as_deref().unwrap_or(OsStr::new(""));
                concerns |= if self.folders.contains(folder) {
                    Path::new(name).extension() == Some(OsStr::new("conf"))
                        || event.mask.contains(AddWatchFlags::IN_IGNORED)
                } else {
                    // The next folder on the way: it may hold a drop-in already.
                    let next = folder.join(name);
                    self.folders.iter().any(|wanted| wanted.starts_with(&next))
                };
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.watches.remove(&event.wd);
                }
            }
        }
        if concerns {
            self.watch()?;
        }
        Ok(concerns)
    }

    /// Watches each folder, or the deepest one above it that exists. A watch that is there already stays.
    fn watch(&mut self) -> io::Result<()> {
        for folder in self.folders.clone() {
            // Twice from the same place: what was made below a folder before its watch told nobody.
            let mut stands = None;
            loop {
                let place = self.watch_deepest(&folder)?;
                if place == stands {
                    break;
                }
                stands = place;
            }
        }
        Ok(())
    }

    /// Watches the deepest folder of the way to `folder`, and tells which it is.
    fn watch_deepest<'a>(&mut self, folder: &'a Path) -> io::Result<Option<&'a Path>> {
        for place in folder.ancestors() {
            let mask = if place == folder { CONTENT } else { WAY };
            match self.inotify.get_ref().add_watch(place, mask) {
                Ok(watch) => {
                    self.watches.insert(watch, place.to_owned());
                    return Ok(Some(place));
                }
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use async_io::Timer;
    use futures_lite::FutureExt;

    use super::*;

    fn heard(drop_ins: &mut DropIns, within: Duration) -> bool {
        async_io::block_on(
            async {
                drop_ins.changed().await.expect("inotify works");
                true
            }
            .or(async {
                Timer::after(within).await;
                false
            }),
        )
    }

    #[test]
    fn a_drop_in_is_heard_of_though_its_folder_did_not_exist() {
        let root = tempfile::tempdir().expect("a folder");
        let (run, config) = (root.path().join("run"), root.path().join("config"));
        fs::create_dir(&run).expect("made");
        let mut drop_ins = DropIns::of_unit(&run, &config, "h.slice").expect("inotify");
        let patience = Duration::from_secs(20);
        // As systemd does it: the folders, then a temporary file that is renamed.
        let write = |base: &Path, name: &str| {
            let folder = base.join("systemd/user.control/h.slice.d");
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join(".#x"), "[Slice]\n").expect("written");
            fs::rename(folder.join(".#x"), folder.join(name)).expect("renamed");
            folder.join(name)
        };
        let runtime = write(&run, "50-CPUQuota.conf");
        while heard(&mut drop_ins, Duration::from_millis(200)) {}
        write(&run, "50-CPUQuota.conf");
        assert!(heard(&mut drop_ins, patience), "a change");
        fs::remove_file(&runtime).expect("removed");
        assert!(heard(&mut drop_ins, patience), "a removal");
        write(&config, "50-CPUQuota.conf");
        assert!(
            heard(&mut drop_ins, patience),
            "a folder far below what existed"
        );
        while heard(&mut drop_ins, Duration::from_millis(200)) {}
        write(&config, "50-CPUQuota.conf");
        assert!(heard(&mut drop_ins, patience), "a change there");
        fs::remove_dir_all(runtime.parent().expect("a folder")).expect("removed");
        assert!(heard(&mut drop_ins, patience), "the folder's end");
        while heard(&mut drop_ins, Duration::from_millis(200)) {}
        write(&run, "50-CPUQuota.conf");
        assert!(heard(&mut drop_ins, patience), "a folder that came again");
    }

    #[test]
    fn folders_that_are_made_while_they_are_looked_for_are_watched() {
        for _ in 0..300 {
            let root = tempfile::tempdir().expect("a folder");
            let (run, config) = (root.path().join("run"), root.path().join("config"));
            fs::create_dir(&run).expect("made");
            let mut drop_ins = DropIns::of_unit(&run, &config, "h.slice").expect("inotify");
            let folder = run.join("systemd/user.control/h.slice.d");
            std::thread::scope(|scope| {
                let maker = scope.spawn(|| fs::create_dir_all(&folder).expect("made"));
                while !maker.is_finished() {
                    drop_ins.take_events().expect("inotify works");
                }
            });
            while drop_ins.take_events().expect("inotify works") {}
            assert!(
                drop_ins.watches.values().any(|watched| *watched == folder),
                "{:?}",
                drop_ins.watches
            );
        }
    }

    #[test]
    fn others_of_the_way_wake_nobody() {
        let root = tempfile::tempdir().expect("a folder");
        let (run, config) = (root.path().join("run"), root.path().join("config"));
        fs::create_dir_all(run.join("systemd/user.control/h.slice.d")).expect("made");
        fs::create_dir(&config).expect("made");
        let mut drop_ins = DropIns::of_unit(&run, &config, "h.slice").expect("inotify");
        fs::write(config.join("other"), "").expect("written");
        fs::create_dir(run.join("systemd/user.control/other.slice.d")).expect("made");
        fs::write(run.join("systemd/user.control/h.slice.d/.#x"), "").expect("written");
        assert!(!heard(&mut drop_ins, Duration::from_millis(300)));
    }
}
