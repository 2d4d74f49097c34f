//! What this guest is, and the settings that suit it.

use anyhow::Result;
use zbus::block_on;

use crate::harness::cgroup;
use crate::harness::guard::HEAVY;
use crate::harness::proc;
use crate::harness::session::{Session, UID};
use crate::harness::units;

/// The guest.
#[derive(Debug)]
pub struct Facts {
    systemd: String,
    cpus: usize,
    enforced: bool,
}

impl Facts {
    /// Looks.
    pub fn gather(session: &Session) -> Result<Facts> {
        Ok(Facts {
            systemd: block_on(async {
                session
                    .systemd()?
                    .version()
                    .await
                    .map_err(anyhow::Error::from)
            })?,
            cpus: proc::cpus()?,
            enforced: cgroup::user_manager_has_cpu(UID)?,
        })
    }

    /// One line about it.
    pub fn headline(&self) -> String {
        let settings: Vec<String> = self
            .settings()
            .iter()
            .map(|(name, value)| format!("{}={value}", name.trim_start_matches("WORKLOAD_GUARD_")))
            .collect();
        format!(
            "systemd {}, {} CPUs, {}; settings: {}",
            self.systemd,
            self.cpus,
            if self.enforced {
                "quotas enforced by the kernel"
            } else {
                "no cpu controller in this container: no quota is enforced here"
            },
            settings.join(" ")
        )
    }

    /// Quicker than the defaults, so that the demo is short. Where nothing holds the build back, a hog among nine
    /// busy processes gets a small part of a CPU, and the threshold has to be below it.
    pub fn settings(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("WORKLOAD_GUARD_SAMPLE_SEC", "1"),
            (
                "WORKLOAD_GUARD_CPU_THRESHOLD",
                if self.enforced { "50" } else { "3" },
            ),
            ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "4"),
            (
                "WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD",
                if self.enforced { "20" } else { "1" },
            ),
            ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "4"),
            ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "4"),
            ("WORKLOAD_GUARD_COOLDOWN_SEC", "5"),
        ]
    }

    /// The kernel's limit of heavy work in percent of one CPU, where there is one.
    pub fn heavy_limit(&self) -> Result<Option<f64>> {
        if !self.enforced {
            return Ok(None);
        }
        cgroup::quota_percent(&units::property(HEAVY, "ControlGroup")?)
    }
}
