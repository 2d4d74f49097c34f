//! Where a tree that is made without root can be kept.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

const VAR_TMP: &str = "/var/tmp";

/// systemd-tmpfiles takes files from /var/tmp that nobody has touched for 30 days; a tree is given up before.
const WHOLE: Duration = Duration::from_secs(20 * 24 * 3600);

/// Whether the folder `path`, made if need be, and every folder on the way to it let all users pass.
pub fn is_open(path: &Path) -> Result<bool> {
    // Made first: the user's umask decides about what is made.
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    for folder in path.ancestors() {
        let metadata =
            fs::metadata(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
        if metadata.permissions().mode() & 0o001 == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The user's own folder below /var/tmp, made if need be.
pub fn in_var_tmp() -> Result<PathBuf> {
    let uid = nix::unistd::geteuid().as_raw();
    own_folder(
        &Path::new(VAR_TMP).join(format!("linux-workload-guard-{uid}")),
        uid,
    )
}

/// Others can create names in /var/tmp, too: the folder must be ours, a real one, and closed to their writing.
fn own_folder(path: &Path, uid: u32) -> Result<PathBuf> {
    match DirBuilder::new().create(path) {
        // Whatever the umask is.
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("cannot open {} for all to read", path.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot create {}", path.display()));
        }
    }
    let metadata =
        fs::symlink_metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    if !metadata.is_dir() || metadata.uid() != uid || metadata.permissions().mode() & 0o022 != 0 {
        bail!(
            "{} is not a folder that only uid {uid} may write to; remove it, or make the home passable for others \
             (chmod o+x) so that the images go there",
            path.display()
        );
    }
    Ok(path.to_owned())
}

/// Whether a tree is there and nothing can have been taken out of it.
pub fn is_whole(tree: &Path) -> bool {
    let Ok(metadata) = fs::metadata(tree) else {
        return false;
    };
    // The status change is the renaming at the end of the build; the modification time is the archive's.
    let made = UNIX_EPOCH + Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or(0));
    metadata.is_dir() && (!tree.starts_with(VAR_TMP) || age(made, SystemTime::now()) < WHOLE)
}

fn age(made: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(made).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_closed_home_closes_what_is_below_it() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".cache");
        fs::create_dir(&cache).unwrap();
        chmod(&cache, 0o755);
        chmod(home.path(), 0o711);
        assert!(is_open(&cache.join("not-there-yet/images")).unwrap());
        chmod(home.path(), 0o750);
        assert!(!is_open(&cache.join("not-there-yet/images")).unwrap());
    }

    #[test]
    fn a_folder_is_used_only_when_it_is_ours_alone() {
        let base = tempfile::tempdir().unwrap();
        let uid = nix::unistd::geteuid().as_raw();
        let path = base.path().join("folder");
        assert_eq!(own_folder(&path, uid).unwrap(), path);
        assert_eq!(own_folder(&path, uid).unwrap(), path);
        assert!(own_folder(&path, uid + 1).is_err());
        chmod(&path, 0o777);
        assert!(own_folder(&path, uid).is_err());
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        assert!(own_folder(&link, uid).is_err());
    }

    #[test]
    fn a_tree_elsewhere_does_not_age_and_a_missing_one_is_not_whole() {
        let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
        assert!(is_whole(folder.path()));
        assert!(!is_whole(&folder.path().join("missing")));
        let now = SystemTime::now();
        assert_eq!(age(now, now + WHOLE), WHOLE);
        assert_eq!(age(now + WHOLE, now), Duration::ZERO);
    }
}
