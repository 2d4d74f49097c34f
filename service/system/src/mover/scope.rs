//! One transient scope, made around one process (StartTransientUnit), and believed only when read back.

use std::time::Instant;

use guard_policy::action::Failure;
use guard_policy::id::ProcId;
use workload_guard_dbus::systemd1::error_name;
use zvariant::{Fd, OwnedObjectPath, Value};

use crate::units::error_name as name_of;
use crate::watch::{Expectation, JobEnd};

use super::Mover;
use super::call::{self, Meaning, meaning};
use super::hold::{Held, gone, is_leaving};
use super::place::{cgroup_of, place};
use super::settings::{Setting, SettingValue};
use super::ties::Ties;

/// A scope to be made.
#[derive(Debug)]
pub(super) struct Spec {
    pub name: String,
    pub slice: String,
    pub ties: Ties,
    /// What else it is given. A manager that does not know one of these makes the scope without it.
    pub settings: Vec<Setting>,
    /// What is left of a RuntimeMaxSec, in microseconds.
    pub runtime: Option<u64>,
}

impl Spec {
    /// Sets, or replaces, one setting.
    pub fn set(&mut self, name: &str, value: SettingValue) {
        self.settings.retain(|setting| setting.name != name);
        self.settings.push(Setting {
            name: name.to_owned(),
            value,
        });
    }
}

/// Why there is no such scope with the process inside.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// The process ended. No scope is left.
    Gone(Failure),
    /// A unit of that name is loaded.
    Exists,
    /// Anything else.
    Refused(Failure),
}

impl NotStarted {
    pub fn into_failure(self, unit: &str) -> Failure {
        match self {
            NotStarted::Gone(failure) | NotStarted::Refused(failure) => failure,
            NotStarted::Exists => Failure::SystemdRefused(format!("a unit {unit} exists already")),
        }
    }
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoSuchProcess(_) => NotStarted::Gone(failure),
            _ => NotStarted::Refused(failure),
        }
    }
}

/// Where a process is, seen from a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// In the unit, in this control group.
    Inside(String),
    /// In this other control group.
    Elsewhere(String),
    /// Ended, a zombie, or exiting.
    Gone,
}

/// How often a process that a failed job left in its scope is adopted again.
const ADOPTIONS: u32 = 3;

impl Mover {
    /// Makes the scope with `first` inside and answers its control group.
    pub(super) async fn start(&self, spec: &Spec, first: &Held) -> Result<String, NotStarted> {
        let expectation = self.signals.expect(&spec.name);
        let began = Instant::now();
        let mut dropped: Vec<String> = Vec::new();
        let mut adoptions = 0;
        // After an answer that did not come: the call may have been carried out.
        let mut unsure = false;
        loop {
            if self.standing(first.id, &spec.name)? == Standing::Gone {
                if unsure {
                    self.clear(spec).await?;
                }
                return Err(NotStarted::Gone(gone(first.id)));
            }
            let error = match self.start_call(spec, first, &dropped).await {
                Ok(job) => {
                    match self.after_job(spec, first.id, &expectation, &job).await? {
                        AfterJob::Entered(cgroup) => return Ok(cgroup),
                        AfterJob::InFailedUnit if adoptions < ADOPTIONS => adoptions += 1,
                        AfterJob::InFailedUnit => {
                            return Err(NotStarted::Refused(Failure::SystemdRefused(format!(
                                "{} failed {ADOPTIONS} times with process {} inside",
                                spec.name, first.id
                            ))));
                        }
                    }
                    continue;
                }
                Err(error) => error,
            };
            match meaning(&error) {
                Meaning::NoSuchProcess => {
                    // Asked of the process itself: it may be that only its exit has not been collected.
                    return Err(NotStarted::Gone(gone(first.id)));
                }
                Meaning::Exists if unsure => {
                    return match self.settle(first.id, &spec.name, &expectation).await? {
                        Standing::Inside(cgroup) => Ok(cgroup),
                        _ => Err(NotStarted::Exists),
                    };
                }
                Meaning::Exists => return Err(NotStarted::Exists),
                Meaning::Unsupported if self.drop_unsupported(spec, &error, &mut dropped) => {}
                Meaning::Away if began.elapsed() < call::REPLACEMENT => {
                    unsure = true;
                    let mut seen = expectation.seen();
                    expectation.news(&mut seen, call::LOOK).await;
                    if let Standing::Inside(cgroup) = self.standing(first.id, &spec.name)? {
                        return Ok(cgroup);
                    }
                }
                Meaning::Away => {
                    return Err(NotStarted::Refused(Failure::Timeout(format!(
                        "systemd's user manager did not come back within {} s ({})",
                        call::REPLACEMENT.as_secs(),
                        call::text(&error)
                    ))));
                }
                _ => {
                    let doing = format!("making {} in {}", spec.name, spec.slice);
                    return Err(call::failure(&doing, &error).into());
                }
            }
        }
    }

    async fn start_call(
        &self,
        spec: &Spec,
        first: &Held,
        dropped: &[String],
    ) -> zbus::Result<OwnedObjectPath> {
        let mut properties: Vec<(&str, Value<'_>)> = vec![
            ("Slice", Value::from(spec.slice.as_str())),
            // AttachProcessesToUnit works on delegated units alone; it also makes OOMPolicy `continue`.
            ("Delegate", Value::from(true)),
            // A failed scope would else stay loaded and mark the user manager degraded.
            ("CollectMode", Value::from("inactive-or-failed")),
        ];
        for (name, units) in [
            ("PartOf", &spec.ties.part_of),
            ("StopPropagatedFrom", &spec.ties.stop_propagated_from),
        ] {
            if !units.is_empty() {
                properties.push((
                    name,
                    Value::from(units.iter().map(String::as_str).collect::<Vec<_>>()),
                ));
            }
        }
        for setting in &spec.settings {
            if !dropped.contains(&setting.name) {
                properties.push((&setting.name, setting.value.to_value()));
            }
        }
        if let Some(left) = spec.runtime {
            properties.push(("RuntimeMaxUSec", Value::from(left)));
        }
        properties.push(match first.pidfd() {
            Some(pidfd) if self.pidfds() => ("PIDFDs", Value::from(vec![Fd::from(pidfd)])),
            _ => ("PIDs", Value::from(vec![first.id.pid])),
        });
        let method = self
            .manager
            .start_transient_unit(&spec.name, "fail", &properties, &[]);
        call::call("StartTransientUnit", method).await
    }

    /// Decides what to leave out after PropertyReadOnly, systemd's answer to any unknown property. The
    /// text names it, which is taken as a hint and no more. False when nothing is left to leave out.
    fn drop_unsupported(
        &self,
        spec: &Spec,
        error: &zbus::Error,
        dropped: &mut Vec<String>,
    ) -> bool {
        let text = call::text(error);
        let named = |name: &str| {
            text.split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| word == name)
        };
        let left = || {
            spec.settings
                .iter()
                .filter(|setting| !dropped.contains(&setting.name))
        };
        if let Some(setting) = left().find(|setting| named(&setting.name)) {
            log::warn!(
                "this systemd takes no {} for {}: left out",
                setting.name,
                spec.name
            );
            dropped.push(setting.name.clone());
            true
        } else if self.pidfds() {
            self.forget_pidfds();
            true
        } else {
            let rest: Vec<String> = left().map(|setting| setting.name.clone()).collect();
            let any = !rest.is_empty();
            dropped.extend(rest);
            any
        }
    }

    async fn after_job(
        &self,
        spec: &Spec,
        first: ProcId,
        expectation: &Expectation,
        job: &OwnedObjectPath,
    ) -> Result<AfterJob, NotStarted> {
        let end = expectation.job(job, call::JOB).await;
        let standing = match end {
            JobEnd::ManagerReplaced => self.settle(first, &spec.name, expectation).await?,
            _ => self.standing(first, &spec.name)?,
        };
        let failed = matches!(&end, JobEnd::Result(result) if result != "done");
        match standing {
            Standing::Inside(_) if failed => return Ok(AfterJob::InFailedUnit),
            Standing::Inside(cgroup) => return Ok(AfterJob::Entered(cgroup)),
            _ => {}
        }
        // Its children may have been born inside before it ended.
        let cgroup = self.cgroup_of(spec);
        if !failed && self.populated(&cgroup) {
            return Ok(AfterJob::Entered(cgroup));
        }
        self.clear(spec).await?;
        let name = &spec.name;
        Err(match (standing, end) {
            (Standing::Gone, _) => NotStarted::Gone(gone(first)),
            (_, JobEnd::Overdue) => NotStarted::Refused(Failure::Timeout(format!(
                "the start of {name} did not end within {} s",
                call::JOB.as_secs()
            ))),
            (Standing::Elsewhere(cgroup), JobEnd::Result(result)) => {
                NotStarted::Refused(Failure::SystemdRefused(format!(
                    "the start of {name} ended as \"{result}\", and process {first} is still in {cgroup}"
                )))
            }
            (_, _) => NotStarted::Refused(Failure::SystemdRefused(format!(
                "systemd's user manager was replaced during the start of {name}, and process {first} did not enter it"
            ))),
        })
    }

    /// Waits until the process is inside, or nothing can be expected any more.
    async fn settle(
        &self,
        id: ProcId,
        unit: &str,
        expectation: &Expectation,
    ) -> Result<Standing, Failure> {
        let deadline = Instant::now() + call::UNLOAD;
        let mut seen = expectation.seen();
        loop {
            let standing = self.standing(id, unit)?;
            if !matches!(standing, Standing::Elsewhere(_)) || Instant::now() > deadline {
                return Ok(standing);
            }
            expectation.news(&mut seen, call::LOOK).await;
        }
    }

    /// Stops a scope that nobody entered: systemd gets no event from a group that was never populated,
    /// so it would stay active for ever. Does nothing when somebody is inside.
    async fn clear(&self, spec: &Spec) -> Result<(), Failure> {
        if self.populated(&self.cgroup_of(spec)) {
            return Ok(());
        }
        self.stop_and_wait(&spec.name).await
    }

    /// Stops a unit and waits until it is unloaded; one that is not loaded is no error.
    pub(super) async fn stop_and_wait(&self, unit: &str) -> Result<(), Failure> {
        let expectation = self.signals.expect(unit);
        let stop = async || self.manager.stop_unit(unit, "replace").await;
        match self.ask("StopUnit", stop).await {
            Ok(_) => {}
            Err(error) if name_of(&error) == Some(error_name::NO_SUCH_UNIT) => return Ok(()),
            Err(error) => return Err(call::failure(&format!("stopping {unit}"), &error)),
        }
        if self.unloaded(unit, &expectation).await? {
            Ok(())
        } else {
            Err(Failure::Timeout(format!(
                "{unit} was stopped but not unloaded within {} s",
                call::UNLOAD.as_secs()
            )))
        }
    }

    /// Waits until a unit is unloaded, at most [`call::UNLOAD`]; false when it is still there.
    pub(super) async fn unloaded(
        &self,
        unit: &str,
        expectation: &Expectation,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + call::UNLOAD;
        let mut seen = expectation.seen();
        loop {
            if !self.is_loaded(unit).await? {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            // A reload hides removals, hence the second look after a while.
            expectation.news(&mut seen, call::LOOK).await;
        }
    }

    pub(super) fn standing(&self, id: ProcId, unit: &str) -> Result<Standing, Failure> {
        let cgroup = self.proc.cgroup(id.pid);
        // After the read, so that it was this process's. One that exits stays where it is, and is no
        // refusal: the kernel moves it no more.
        let stat = self.proc.stat(id.pid).map_err(call::unreadable)?;
        if stat.is_none_or(|stat| stat.start != id.start || is_leaving(&stat)) {
            return Ok(Standing::Gone);
        }
        let Some(cgroup) = cgroup else {
            return Ok(Standing::Gone);
        };
        let inside = place(&self.root, &cgroup)
            .and_then(|place| place.unit)
            .as_deref()
            == Some(unit);
        Ok(if inside {
            Standing::Inside(cgroup)
        } else {
            Standing::Elsewhere(cgroup)
        })
    }

    /// Whether anybody is in a control group or below it.
    pub(super) fn populated(&self, cgroup: &str) -> bool {
        self.cgroups.populated(cgroup).unwrap_or(false)
    }

    pub(super) fn cgroup_of(&self, spec: &Spec) -> String {
        cgroup_of(&self.root, &spec.slice, &spec.name)
    }
}

/// What a start job led to.
enum AfterJob {
    Entered(String),
    InFailedUnit,
}
