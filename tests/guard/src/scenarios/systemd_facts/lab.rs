//! Calls to systemd as the guard makes them, with the job's result waited for.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_lite::StreamExt;
use workload_guard_dbus::systemd1::{ManagerProxy, error_name};
use zbus::block_on;
use zvariant::Value;

use crate::harness::load::Load;
use crate::harness::session::Session;
use crate::harness::wait::{self, PATIENCE, until_true};

/// Properties beyond the fixed ones.
pub type Extra<'a> = &'a [(&'a str, Value<'a>)];

/// systemd, and a word for each thing that the facts do with it.
pub struct Lab {
    /// The user's systemd.
    pub systemd: ManagerProxy<'static>,
}

impl Lab {
    /// Subscribes, since units' signals come only then.
    pub fn new(session: &Session) -> Result<Lab> {
        let systemd = session.systemd()?;
        block_on(systemd.subscribe())?;
        Ok(Lab { systemd })
    }

    /// Starts a scope around processes and answers the job's result; an error of the call is the error.
    pub fn scope(&self, name: &str, pids: &[u32], extra: Extra<'_>) -> zbus::Result<String> {
        let mut properties = vec![
            ("PIDs", Value::from(pids.to_vec())),
            ("Slice", Value::from("app.slice")),
        ];
        properties.extend(
            extra
                .iter()
                .map(|(name, value)| Ok((*name, value.try_clone()?)))
                .collect::<zvariant::Result<Vec<_>>>()?,
        );
        block_on(async {
            let mut ended = self.systemd.receive_job_removed().await?;
            let job = self
                .systemd
                .start_transient_unit(name, "fail", &properties, &[])
                .await?;
            while let Some(signal) = ended.next().await {
                let args = signal.args()?;
                if args.job == job {
                    return Ok(args.result.clone());
                }
            }
            Err(zbus::Error::Failure("the bus went away".to_owned()))
        })
    }

    /// As [`Lab::scope`] for a job that must be done.
    pub fn moved(&self, name: &str, pids: &[u32], extra: Extra<'_>) -> Result<()> {
        let result = self
            .scope(name, pids, extra)
            .with_context(|| format!("starting {name}"))?;
        ensure!(result == "done", "the job of {name} ended as {result}");
        Ok(())
    }

    /// Waits until a unit is no longer loaded.
    pub fn unloaded(&self, unit: &str) -> Result<()> {
        until_true(&format!("{unit} is unloaded"), PATIENCE, || {
            match block_on(self.systemd.get_unit(unit)) {
                Err(error) if name_of(&error) == error_name::NO_SUCH_UNIT => Ok(true),
                Err(error) => Err(error.into()),
                Ok(_) => Ok(false),
            }
        })
    }
}

/// The D-Bus name of a method's error; the text of any other.
pub fn name_of(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(name, _, _) => name.to_string(),
        other => other.to_string(),
    }
}

/// A list of units as a property's value, for ties.
pub fn units(name: &str) -> Value<'static> {
    Value::from(vec![name.to_owned()])
}

/// The call must fail under this name.
pub fn fails_as<T: std::fmt::Debug>(answer: zbus::Result<T>, name: &str) -> Result<()> {
    match answer {
        Err(error) => {
            let found = name_of(&error);
            ensure!(found == name, "it failed as {found}, not as {name}");
            Ok(())
        }
        Ok(answer) => bail!("it succeeded: {answer:?}"),
    }
}

/// The load lives on in `unit` for a while.
pub fn lives_in(load: &Load, unit: &str) -> Result<()> {
    wait::hold("the process lives", Duration::from_millis(500), || {
        let now = load.now_in()?;
        ensure!(now.ends_with(unit), "it is in {now}");
        Ok(())
    })
}
