//! The way to the guard: the user bus, the guard's name on it, and systemd when it has to be started.

use std::time::Duration;

use async_io::Timer;
use futures::StreamExt;
use futures_lite::FutureExt;
use workload_guard_dbus::Guard1Proxy;
use workload_guard_dbus::names::{GUARD_NAME, GUARD_UNIT};
use workload_guard_dbus::systemd1::{
    ManagerProxy, SYSTEMD_NAME, UNIT_INTERFACE, UnitPropertiesProxy, error_name,
};
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::proxy::CacheProperties;
use zvariant::OwnedObjectPath;

use crate::args::Target;
use crate::error::CliError;
use crate::session;

/// The longest wait for the answer to one call: systemd's own default for D-Bus calls.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(25);
/// The longest wait for a job of systemd's. A guard that needs longer to start has failed.
const JOB_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest start of the guard's that nothing is said about: with what came before less than 100 ms.
const SILENCE: Duration = Duration::from_millis(50);

/// Does `work`, and what a connection has to do for it, in this thread: another one would cost a short question more
/// than the question.
pub async fn driven<T>(bus: &Connection, work: impl Future<Output = T>) -> T {
    let tasks = async {
        loop {
            bus.executor().tick().await;
        }
    };
    work.or(tasks).await
}

/// Connects to the user bus. What is done with the connection is to be [`driven`].
pub async fn connect() -> Result<Connection, CliError> {
    connect_for(Duration::ZERO).await
}

/// The same for a call whose answer takes so long by itself.
pub async fn connect_for(call: Duration) -> Result<Connection, CliError> {
    let connect = async {
        zbus::connection::Builder::session()?
            .method_timeout(CALL_TIMEOUT + call)
            .internal_executor(false)
            .build()
            .await
    };
    let late = async {
        Timer::after(CALL_TIMEOUT).await;
        Err(zbus::Error::InputOutput(
            std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
        ))
    };
    connect.or(late).await.map_err(|error| {
        let error = match error {
            zbus::Error::InputOutput(io) => io.to_string(),
            other => other.to_string(),
        };
        CliError::Unavailable(session::explain(&session::Facts::gather(), &error))
    })
}

/// A guard that answers, started when it is installed and does not run; else the reason why there is none.
///
/// systemd is asked to start it, not the bus: when the unit fails at start, dbus-daemon never hears of it
/// and lets its callers hang (measured on systemd 252 to 262).
pub async fn guard(
    bus: &Connection,
    elsewhere: Option<&Target>,
) -> Result<Guard1Proxy<'static>, CliError> {
    if !has_owner(bus, GUARD_NAME).await? {
        start_guard(bus, elsewhere).or(say_so()).await?;
    }
    // One question per run: a cache would only add a match rule and a GetAll.
    Ok(Guard1Proxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?)
}

/// Stays on the bus until that ends. What is held for this program is held so long.
pub async fn end_of(bus: &Connection) -> CliError {
    let mut messages = zbus::MessageStream::from(bus);
    while let Some(Ok(_)) = messages.next().await {}
    CliError::Unavailable(
        "the user bus closed the connection, and with that the lease ended".into(),
    )
}

/// systemd's user manager; an error in words when it is not on this bus.
pub async fn manager(bus: &Connection) -> Result<ManagerProxy<'static>, CliError> {
    if !has_owner(bus, SYSTEMD_NAME).await? {
        return Err(CliError::Unavailable(
            "no systemd user manager on this bus (org.freedesktop.systemd1 has no owner): the bus was started without it, \
             as by dbus-run-session; unset DBUS_SESSION_BUS_ADDRESS to reach the session's own"
                .into(),
        ));
    }
    Ok(ManagerProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?)
}

async fn has_owner(bus: &Connection, name: &'static str) -> Result<bool, CliError> {
    let dbus = DBusProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let name = BusName::try_from(name).expect("our names are well-formed");
    dbus.name_has_owner(name)
        .await
        .map_err(|error| zbus::Error::from(error).into())
}

/// Says what this program waits for, once a person could wonder.
async fn say_so() -> Result<(), CliError> {
    Timer::after(SILENCE).await;
    eprintln!("workload-guard: the guard does not run yet; starting {GUARD_UNIT}");
    std::future::pending().await
}

async fn start_guard(bus: &Connection, elsewhere: Option<&Target>) -> Result<(), CliError> {
    let manager = manager(bus).await?;
    let unit = manager.load_unit(GUARD_UNIT).await?;
    match unit_text(bus, &unit, "LoadState").await?.as_str() {
        "loaded" => {}
        "not-found" => {
            return Err(CliError::Unavailable(format!(
                "the guard is not installed for this user ({GUARD_UNIT} has no unit file); install it with: cargo xtask install"
            )));
        }
        "masked" => {
            return Err(CliError::Unavailable(format!(
                "{GUARD_UNIT} is masked; to use it: systemctl --user unmask --now {GUARD_UNIT}"
            )));
        }
        other => {
            return Err(CliError::Unavailable(format!(
                "{GUARD_UNIT} cannot be loaded ({other}); see: systemctl --user status {GUARD_UNIT}"
            )));
        }
    }
    let result = run_job(&manager, async {
        manager.start_unit(GUARD_UNIT, "replace").await
    })
    .await;
    let why = match result {
        Ok(result) if result == "done" => return Ok(()),
        Ok(result) => format!("its job ended: {result}"),
        Err(error) => error.to_string(),
    };
    let facts = session::Facts::gather();
    let here = facts.no_cgroup2().filter(|_| elsewhere.is_none());
    Err(CliError::Unavailable(match here {
        Some(text) => format!("{GUARD_UNIT} did not start ({why}): {text}"),
        None => format!(
            "{GUARD_UNIT} did not start ({why}); see: journalctl --user -u {GUARD_UNIT} -n 20"
        ),
    }))
}

/// A text property that every unit has.
pub async fn unit_text(
    bus: &Connection,
    unit: &OwnedObjectPath,
    name: &str,
) -> Result<String, CliError> {
    let properties = UnitPropertiesProxy::builder(bus)
        .path(unit)?
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let value = properties.get(UNIT_INTERFACE, name).await?;
    String::try_from(value)
        .map_err(|_| CliError::Failed(format!("systemd's {name} of {unit} is not a text")))
}

/// Why a job's end is not known.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The request was refused, or the bus failed.
    #[error(transparent)]
    Bus(#[from] zbus::Error),
    /// The connection broke while the job ran.
    #[error("the connection to the user bus broke")]
    Disconnected,
    /// It takes longer than anyone should wait.
    #[error("systemd did not finish within {} s", JOB_TIMEOUT.as_secs())]
    Late,
}

impl From<JobError> for CliError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Bus(error) => error.into(),
            JobError::Disconnected => CliError::Unavailable(error.to_string()),
            JobError::Late => CliError::Failed(error.to_string()),
        }
    }
}

/// Asks for a job with `request` and waits for its end: `done`, or what went wrong.
pub async fn run_job(
    manager: &ManagerProxy<'_>,
    request: impl Future<Output = zbus::Result<OwnedObjectPath>>,
) -> Result<String, JobError> {
    // Before the request: the job may have ended when its reply comes. One's own jobs are told without Subscribe.
    let mut ended = manager.receive_job_removed().await?;
    let job = request.await?;
    let wait = async {
        while let Some(signal) = ended.next().await {
            let args = signal.args()?;
            if args.job == job {
                return Ok(args.result.clone());
            }
        }
        Err(JobError::Disconnected)
    };
    let late = async {
        Timer::after(JOB_TIMEOUT).await;
        Err(JobError::Late)
    };
    wait.or(late).await
}

/// Whether systemd says that a unit of this name is there already.
pub fn unit_exists(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, _, _) if name.as_str() == error_name::UNIT_EXISTS)
}
