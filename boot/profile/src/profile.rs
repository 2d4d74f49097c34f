//! The three boot profiles.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A boot profile: which question a boot of the machine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Is A faster than B? One isolated core, load balancing off.
    SingleCore,
    /// How does it scale? A whole core complex as a real pool.
    MultiCore,
    /// How fast can this machine go? No restriction at all.
    Unlimited,
}

impl Profile {
    /// All of them, in the order of the boot menu.
    pub const ALL: [Profile; 3] = [Profile::SingleCore, Profile::MultiCore, Profile::Unlimited];

    /// The name on the command line, in files and on the bus.
    pub fn name(self) -> &'static str {
        match self {
            Profile::SingleCore => "single-core",
            Profile::MultiCore => "multi-core",
            Profile::Unlimited => "unlimited",
        }
    }

    /// Whether some CPUs are kept for measuring, and so have pinning, steered interrupts and a guard.
    pub fn isolates(self) -> bool {
        self != Profile::Unlimited
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no profile's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile is called {0:?}: there are single-core, multi-core and unlimited")]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        let error = "turbo".parse::<Profile>().expect_err("no such profile");
        assert!(error.to_string().contains("\"turbo\""), "{error}");
    }
}
