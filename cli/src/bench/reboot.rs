//! `bench reboot --once`: the loader is told, then the machine restarts.

use bench_profile::profile::Profile;
use workload_guard_dbus::login1::LoginProxy;
use zbus::proxy::CacheProperties;

use super::service;
use crate::error::CliError;

/// Restarts into `profile`, once.
pub fn run(profile: Profile) -> Result<u8, CliError> {
    async_io::block_on(async {
        let bus = service::connect().await?;
        let bench = service::service(&bus).await?;
        let entry: String = service::call(&bench, "SetNextBoot", &(profile.name(),)).await?;
        crate::print(&format!("the next boot is {entry}; restarting\n"))?;
        let logind = LoginProxy::builder(&bus)
            .cache_properties(CacheProperties::No)
            .build()
            .await
            .map_err(service::explain)?;
        let restarted = logind.reboot(service::may_ask()).await;
        restarted.map_err(|error| {
            CliError::Failed(format!(
                "the machine does not restart ({error}); its next boot is into {profile} all the same, unless \
                 SetNextBoot takes it back: busctl call org.workloadguard.BenchPrep1 /org/workloadguard/BenchPrep1 \
                 org.workloadguard.BenchPrep1 SetNextBoot s ''"
            ))
        })?;
        Ok(0)
    })
}
