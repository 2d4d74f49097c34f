//! The system manager's units and logind, for the threads that do the work.

use std::time::Duration;

use async_io::{Timer, block_on};
use bench_system::hands::Units;
use futures::StreamExt;
use futures_lite::FutureExt;
use workload_guard_dbus::login1::LoginProxy;
use workload_guard_dbus::systemd1::{
    ManagerProxy, UNIT_INTERFACE, UnitPropertiesProxy, error_name,
};
use zbus::proxy::CacheProperties;
use zvariant::OwnedObjectPath;

/// The longest wait for a job: systemd's own patience with a service that does not end is 90 s.
const JOB_TIMEOUT: Duration = Duration::from_secs(100);

/// systemd, on this bus.
#[derive(Clone, Debug)]
pub struct Systemd(zbus::Connection);

/// What is to become of a unit.
#[derive(Clone, Copy)]
enum Job {
    Start,
    Stop,
}

impl Systemd {
    /// Asks over `connection`.
    pub fn new(connection: zbus::Connection) -> Systemd {
        Systemd(connection)
    }

    async fn manager(&self) -> zbus::Result<ManagerProxy<'static>> {
        ManagerProxy::builder(&self.0)
            .cache_properties(CacheProperties::No)
            .build()
            .await
    }

    async fn active(&self, unit: &str) -> zbus::Result<bool> {
        let path = match self.manager().await?.get_unit(unit).await {
            Ok(path) => path,
            Err(zbus::Error::MethodError(name, _, _))
                if name.as_str() == error_name::NO_SUCH_UNIT =>
            {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let properties = UnitPropertiesProxy::builder(&self.0)
            .path(&path)?
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let state = String::try_from(properties.get(UNIT_INTERFACE, "ActiveState").await?)?;
        Ok(!matches!(state.as_str(), "inactive" | "failed"))
    }

    async fn run(&self, unit: &str, job: Job) -> Result<(), String> {
        let words = |error: zbus::Error| error.to_string();
        let manager = self.manager().await.map_err(words)?;
        // Before the request: the job may have ended when its reply comes.
        let mut ended = manager.receive_job_removed().await.map_err(words)?;
        let job: OwnedObjectPath = match job {
            Job::Start => manager.start_unit(unit, "replace").await,
            Job::Stop => manager.stop_unit(unit, "replace").await,
        }
        .map_err(words)?;
        let wait = async {
            while let Some(signal) = ended.next().await {
                let args = signal.args().map_err(words)?;
                if args.job == job {
                    return match args.result.as_str() {
                        "done" => Ok(()),
                        other => Err(format!("systemd's job for {unit} ended: {other}")),
                    };
                }
            }
            Err("the connection to the system bus broke".to_owned())
        };
        let late = async {
            Timer::after(JOB_TIMEOUT).await;
            Err(format!(
                "systemd did not finish within {} s",
                JOB_TIMEOUT.as_secs()
            ))
        };
        wait.or(late).await
    }
}

impl Systemd {
    /// Has logind tell the boot loader which entry the next boot alone is; empty takes it back.
    pub fn next_boot(&self, id: &str) -> Result<(), String> {
        let asked = async {
            let logind = LoginProxy::builder(&self.0)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            logind.set_reboot_to_boot_loader_entry(id).await
        };
        block_on(asked).map_err(|error: zbus::Error| error.to_string())
    }
}

impl Units for Systemd {
    fn is_active(&mut self, unit: &str) -> Result<bool, String> {
        block_on(self.active(unit)).map_err(|error| error.to_string())
    }

    fn stop(&mut self, unit: &str) -> Result<(), String> {
        block_on(self.run(unit, Job::Stop))
    }

    fn start(&mut self, unit: &str) -> Result<(), String> {
        block_on(self.run(unit, Job::Start))
    }
}
