//! The machine that the testbed runs on: who we are, which packages are missing, where Debian is mirrored.

pub mod apt_sources;
pub mod packages;

use std::path::Path;

/// Whether we are root, as the container tier needs.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether systemd is the host's PID 1 (`sd_booted(3)`).
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Whether a skip is to be a failure: `CI=true`.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// The value of a key in /etc/os-release, without quotes.
fn os_release(key: &str) -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    os_release_value(&text, key)
}

fn os_release_value(text: &str, key: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .map(|value| value.trim_matches(['"', '\'']).to_owned())
}

/// Whether apt and its archives are Debian's or made from Debian's (`ID` or `ID_LIKE` in os-release).
pub fn is_debian_like() -> bool {
    ["ID", "ID_LIKE"]
        .iter()
        .filter_map(|key| os_release(key))
        .any(|value| {
            value
                .split_whitespace()
                .any(|id| id == "debian" || id == "ubuntu")
        })
}

/// A mirror that has Debian's suites: the host's own when the host is Debian, else the public one.
pub fn debian_mirror() -> String {
    const PUBLIC: &str = "http://deb.debian.org/debian";
    if os_release("ID").as_deref() != Some("debian") {
        return PUBLIC.to_owned();
    }
    let codename = os_release("VERSION_CODENAME").unwrap_or_else(|| "sid".to_owned());
    apt_sources::read("/etc/apt".as_ref())
        .into_iter()
        .find_map(|text| apt_sources::archive(&text, &codename))
        .unwrap_or_else(|| PUBLIC.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_values_lose_their_quotes() {
        let text = "ID=debian\nID_LIKE=\"ubuntu debian\"\nVERSION_CODENAME=bookworm\n";
        assert_eq!(os_release_value(text, "ID").as_deref(), Some("debian"));
        assert_eq!(
            os_release_value(text, "ID_LIKE").as_deref(),
            Some("ubuntu debian")
        );
        assert_eq!(os_release_value(text, "VERSION"), None);
    }
}
