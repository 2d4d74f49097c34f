//! `bench apply` and `bench restore`: what changes the machine is asked of bench-prepd, on the system bus.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::Duration;

use async_io::Timer;
use bench_profile::profile::Profile;
use bench_profile::requested::Options;
use futures_lite::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use workload_guard_dbus::bench_types::KnobRow;
use workload_guard_dbus::names::{BENCH_NAME, BENCH_UNIT};
use workload_guard_dbus::systemd1::ManagerProxy;
use workload_guard_dbus::{BenchError, BenchPrep1Proxy};
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::proxy::{CacheProperties, MethodFlags};
use zvariant::{DynamicType, Value};

use super::knobs;
use crate::bus::{self, JobError};
use crate::error::CliError;

/// The longest wait for the service to start.
const START: Duration = Duration::from_secs(20);

/// What is asked of the service.
pub enum Request {
    /// A state; without a profile that of the boot.
    Apply(Option<Profile>, Options),
    /// What was there before.
    Restore,
}

/// Asks, and says what came of it.
pub fn run(request: &Request, json: bool) -> Result<u8, CliError> {
    let (applied, rows) = async_io::block_on(ask(request))?;
    let text = if json {
        crate::render::to_json(&knobs::View::new(&applied, &rows))
    } else {
        knobs::text(&applied, &rows)
    };
    crate::print(&text).map(|()| 0)
}

/// The system bus.
pub async fn connect() -> Result<Connection, CliError> {
    zbus::connection::Builder::system()
        .map_err(explain)?
        .build()
        .await
        .map_err(|error| {
            CliError::Unavailable(format!("the system bus cannot be reached: {error}"))
        })
}

/// The service on it, which runs then.
pub async fn service(bus: &Connection) -> Result<BenchPrep1Proxy<'static>, CliError> {
    start(bus).await?;
    BenchPrep1Proxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await
        .map_err(explain)
}

/// What is applied afterwards, and each setting.
async fn ask(request: &Request) -> Result<(String, Vec<KnobRow>), CliError> {
    let service = service(&connect().await?).await?;
    let rows = match request {
        Request::Apply(profile, options) => {
            let name = profile.map_or("", Profile::name);
            call(&service, "Apply", &(name, wire(options))).await?
        }
        Request::Restore => call(&service, "Restore", &()).await?,
    };
    Ok((service.applied().await.map_err(explain)?, rows))
}

/// The options that differ from what the machine file says.
fn wire(options: &Options) -> HashMap<&'static str, Value<'static>> {
    let word = |on: bool| Value::from(if on { "on" } else { "off" });
    let mut wire = HashMap::new();
    wire.extend(options.boost.map(|on| ("boost", word(on))));
    wire.extend(options.smt.map(|on| ("smt", word(on))));
    if options.keep_housekeeping {
        wire.insert("keep-housekeeping-cores", true.into());
    }
    wire
}

/// Calls a member. Where somebody sits at a terminal, polkit may ask that one; a script is refused at once instead.
pub async fn call<B, R>(
    service: &BenchPrep1Proxy<'_>,
    member: &'static str,
    body: &B,
) -> Result<R, CliError>
where
    B: Serialize + DynamicType,
    R: DeserializeOwned + zvariant::Type,
{
    let flags = match may_ask() {
        true => MethodFlags::AllowInteractiveAuth.into(),
        false => Default::default(),
    };
    let answer: Option<R> = service
        .inner()
        .call_with_flags(member, flags, body)
        .await
        .map_err(|error| refused(BenchError::from(error)))?;
    answer.ok_or_else(|| CliError::Failed(format!("{BENCH_UNIT} gave no answer to {member}")))
}

/// Whether somebody is there who could be asked.
pub fn may_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Has the service started where it does not run. root asks systemd, whose answer says why it does not start; others
/// have the bus do it.
async fn start(bus: &Connection) -> Result<(), CliError> {
    let dbus = DBusProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await
        .map_err(explain)?;
    let name = zbus::names::BusName::try_from(BENCH_NAME).expect("our names are well-formed");
    if dbus
        .name_has_owner(name)
        .await
        .map_err(|error| explain(error.into()))?
    {
        return Ok(());
    }
    if nix::unistd::geteuid().is_root() {
        return start_unit(bus).await;
    }
    let name = zbus::names::WellKnownName::try_from(BENCH_NAME).expect("our names are well-formed");
    let started = async {
        dbus.start_service_by_name(name, 0)
            .await
            .map(drop)
            .map_err(|error| explain(error.into()))
    };
    let late = async {
        Timer::after(START).await;
        Err(did_not_start("the bus does not say why"))
    };
    started.or(late).await
}

async fn start_unit(bus: &Connection) -> Result<(), CliError> {
    let manager = ManagerProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await
        .map_err(explain)?;
    let job = bus::run_job(&manager, async {
        manager.start_unit(BENCH_UNIT, "replace").await
    });
    match job.await {
        Ok(result) if result == "done" => Ok(()),
        Ok(result) => Err(did_not_start(&format!("its job ended: {result}"))),
        Err(JobError::Bus(zbus::Error::MethodError(name, _, _)))
            if name.as_str() == "org.freedesktop.systemd1.NoSuchUnit" =>
        {
            Err(not_installed())
        }
        Err(error) => Err(did_not_start(&error.to_string())),
    }
}

fn did_not_start(why: &str) -> CliError {
    CliError::Unavailable(format!(
        "{BENCH_UNIT} did not start ({why}); see: journalctl -u {BENCH_UNIT} -n 20"
    ))
}

fn not_installed() -> CliError {
    CliError::Unavailable(format!(
        "the bench profiles are not installed on this machine: there is no {BENCH_UNIT}"
    ))
}

fn refused(error: BenchError) -> CliError {
    match error {
        BenchError::ZBus(error) => explain(error),
        BenchError::NotAuthorized(text) => CliError::NotPermitted(text),
        other => CliError::Failed(other.text()),
    }
}

/// The bus's own errors, as they are meant here.
pub fn explain(error: zbus::Error) -> CliError {
    match &error {
        zbus::Error::MethodError(name, text, _) => {
            let text = text.as_deref().unwrap_or("no further words");
            match name.as_str() {
                "org.freedesktop.DBus.Error.AccessDenied" => {
                    CliError::NotPermitted(format!("not permitted: {text}"))
                }
                "org.freedesktop.DBus.Error.ServiceUnknown"
                | "org.freedesktop.DBus.Error.NameHasNoOwner" => not_installed(),
                name if name.starts_with("org.freedesktop.DBus.Error.Spawn") => did_not_start(text),
                "org.freedesktop.DBus.Error.NoReply" | "org.freedesktop.DBus.Error.TimedOut" => {
                    CliError::Unavailable(format!(
                        "{BENCH_UNIT} gave no answer ({text}): it ended meanwhile. What it changed is recorded, and \
                         `workload-guard bench restore` puts it back; see: journalctl -u {BENCH_UNIT} -n 20"
                    ))
                }
                name => CliError::Failed(format!("{text} ({name})")),
            }
        }
        zbus::Error::InputOutput(io) => {
            CliError::Unavailable(format!("the connection to the system bus broke: {io}"))
        }
        _ => CliError::Failed(format!("the bus answered what was not expected: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_travels() {
        assert!(wire(&Options::default()).is_empty());
        let all = wire(&Options {
            boost: Some(true),
            smt: Some(false),
            keep_housekeeping: true,
        });
        assert_eq!(all["boost"], Value::from("on"));
        assert_eq!(all["smt"], Value::from("off"));
        assert_eq!(all["keep-housekeeping-cores"], Value::from(true));
    }

    #[test]
    fn a_refusal_is_no_failure() {
        let code = |error: BenchError| refused(error).exit_code();
        assert_eq!(code(BenchError::NotAuthorized("no".into())), 77);
        assert_eq!(code(BenchError::Busy("another".into())), 1);
        assert_eq!(code(BenchError::KnobFailed("swap".into())), 1);
        let io = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let broken = zbus::Error::InputOutput(io.into());
        assert_eq!(code(BenchError::ZBus(broken)), 69);
    }
}
