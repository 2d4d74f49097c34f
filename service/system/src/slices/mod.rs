//! The slices of the classes: started, and compared with what the kernel enforces.
//!
//! A success that systemd reports is not believed until read back: on 257 a slice that was active when
//! its unit file appeared keeps the kernel's old values through a daemon-reload, while its properties
//! tell the new ones (measured). Any SetUnitProperties on the unit applies them, even one of a
//! Description that it has already.

mod budget;
mod drop_ins;
mod given;
mod limits;
mod quota;
mod runtime;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_io::Timer;
use futures_lite::FutureExt;
use guard_policy::budget::{Property, UnitSetting, unit_settings};
use guard_policy::class::{Class, slice_chain};
use guard_policy::health::Problem;
use workload_guard_dbus::systemd1::{ManagerProxy, error_name};
use workload_guard_dbus::types::ClassRow;
use zbus::Connection;
use zbus::proxy::CacheProperties;
use zvariant::Value;

use crate::cgroup::CgroupFs;
use crate::units::{self, UnitView};
use budget::{Enforced, Wanted, differences};
pub use drop_ins::DropIns;
pub use given::{Given, GivenBudgets};
use limits::Limits;
pub use quota::{SliceQuota, quota, set_quota};
pub use runtime::set_properties;

/// How long all calls of one inspection may take together.
const INSPECTION: Duration = Duration::from_secs(10);
/// How long a slice may take to start. It starts no program: a few milliseconds, measured.
const START: Duration = Duration::from_secs(3);
/// Between two looks at a slice that starts.
const LOOK: Duration = Duration::from_millis(5);

/// The capability of a machine whose user manager has the cpu controller.
pub const CPU_CONTROLLER: &str = "cpu-controller";

/// What an inspection found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspection {
    /// What keeps the guard from doing all of its work.
    pub problems: Vec<Problem>,
    /// Each class with the budget that the kernel enforces, in the order of the settings.
    pub classes: Vec<ClassRow>,
    /// The control group of each class's slice and of each parent unit that has one.
    pub cgroups: BTreeMap<String, String>,
    /// What this machine offers.
    pub capabilities: Vec<String>,
}

/// Starts the slices of the classes and those among the parent units, and compares their budgets, and
/// those of the slices around them, with the kernel's.
///
/// Never fails: what is wrong is a [`Problem`].
pub async fn inspect(
    connection: &Connection,
    cgroups: &CgroupFs,
    classes: &[Class],
    parents: &[String],
) -> Inspection {
    inspect_within(INSPECTION, connection, cgroups, classes, parents).await
}

async fn inspect_within(
    limit: Duration,
    connection: &Connection,
    cgroups: &CgroupFs,
    classes: &[Class],
    parents: &[String],
) -> Inspection {
    let late = async {
        Timer::after(limit).await;
        Err(format!("no answer within {} s", limit.as_secs()))
    };
    let look = async {
        let inspector = Inspector::new(connection, cgroups)
            .await
            .map_err(|error| words(&error))?;
        inspector
            .inspect(classes, parents)
            .await
            .map_err(|error| words(&error))
    };
    look.or(late).await.unwrap_or_else(|error| Inspection {
        problems: vec![Problem::NoSystemd(error)],
        classes: classes
            .iter()
            .map(|class| row(class, None, None, Limits::default()))
            .collect(),
        ..Inspection::default()
    })
}

/// Starts each slice that is not active, and waits for it. What systemd refused is answered.
pub async fn ensure_started(
    connection: &Connection,
    slices: &[String],
) -> zbus::Result<Vec<Problem>> {
    let manager = manager(connection).await?;
    let mut problems = Vec::new();
    for slice in slices {
        if let Err(problem) = start(connection, &manager, slice).await? {
            problems.push(problem);
        }
    }
    Ok(problems)
}

struct Inspector<'a> {
    connection: &'a Connection,
    manager: ManagerProxy<'static>,
    cgroups: &'a CgroupFs,
}

impl<'a> Inspector<'a> {
    async fn new(connection: &'a Connection, cgroups: &'a CgroupFs) -> zbus::Result<Inspector<'a>> {
        Ok(Inspector {
            connection,
            manager: manager(connection).await?,
            cgroups,
        })
    }

    /// An error is one of the connection or of the manager as a whole.
    async fn inspect(&self, classes: &[Class], parents: &[String]) -> zbus::Result<Inspection> {
        let mut found = Inspection::default();
        let (controllers, controllers_file) = self.controllers().await?;
        let has_cpu = controllers.iter().any(|name| name == "cpu");
        if has_cpu {
            found.capabilities.push(CPU_CONTROLLER.to_owned());
        } else {
            found.problems.push(Problem::NoCpuController {
                controllers_file: controllers_file.clone(),
            });
        }
        let mut units: BTreeSet<&str> = classes.iter().map(|class| class.slice.as_str()).collect();
        units.extend(parents.iter().map(String::as_str));
        for unit in units {
            match self.started(unit).await? {
                Ok(cgroup) => {
                    found.cgroups.insert(unit.to_owned(), cgroup);
                }
                Err(problem) => found.problems.push(problem),
            }
        }
        for setting in unit_settings(classes, parents) {
            let problem = self
                .limit(&setting, &controllers, &controllers_file)
                .await?;
            found.problems.extend(problem);
        }
        if !has_cpu {
            // Neither quotas nor weights can hold, and one problem says so.
            let row = |class: &Class| row(class, None, None, self.limits(&class.slice, &found));
            found.classes = classes.iter().map(row).collect();
            return Ok(found);
        }
        let mut seen = BTreeMap::new();
        for class in classes {
            let mut wanted = Vec::new();
            let mut enforced = Vec::new();
            for slice in slice_chain(&class.slice) {
                if !seen.contains_key(&slice) {
                    let (budget, problems) = self.budget(&slice).await?;
                    found.problems.extend(problems);
                    seen.insert(slice.clone(), budget);
                }
                let (want, hold) = &seen[&slice];
                wanted.push(*want);
                enforced.push(hold.clone());
            }
            // A class of the user's own may be bounded by something else.
            let bounded = !class.budget.is_empty()
                || wanted
                    .iter()
                    .any(|wanted: &Wanted| wanted.quota_usec_per_sec.is_some());
            if !bounded && found.cgroups.contains_key(&class.slice) {
                let (slice, class) = (class.slice.clone(), class.name.clone());
                found.problems.push(Problem::NoBudget { slice, class });
            }
            // The outermost slice is the one that has the other classes for siblings.
            let weight = enforced
                .first()
                .and_then(|outermost: &Enforced| outermost.weight);
            let quota = enforced
                .iter()
                .filter_map(Enforced::quota_percent)
                .reduce(f64::min);
            let limits = self.limits(&class.slice, &found);
            found.classes.push(row(class, quota, weight, limits));
        }
        Ok(found)
    }

    /// The controllers that the user manager has, and the file that says so.
    async fn controllers(&self) -> zbus::Result<(Vec<String>, String)> {
        let group = self.manager.control_group().await?;
        let group = if group.is_empty() { "/" } else { &group };
        let names = self.cgroups.controllers(group).unwrap_or_default();
        let file = self
            .cgroups
            .root()
            .join(group.trim_start_matches('/'))
            .join("cgroup.controllers");
        Ok((names, file.display().to_string()))
    }

    /// What keeps memory, IO or tasks from being bounded as the settings say.
    async fn limit(
        &self,
        setting: &UnitSetting,
        controllers: &[String],
        controllers_file: &str,
    ) -> zbus::Result<Option<Problem>> {
        let controller = setting.property.controller();
        if controller == "cpu" {
            return Ok(None);
        }
        if !controllers.iter().any(|name| name == controller) {
            return Ok(Some(Problem::NoController {
                controller,
                class: setting.class.clone(),
                key: setting.property.key(),
                controllers_file: controllers_file.to_owned(),
            }));
        }
        let view = units::view(self.connection, &setting.unit).await?;
        Ok(limits::difference(self.cgroups, &view, setting))
    }

    /// What the kernel holds beside the CPU, of the slice itself; of weights, that of the outermost slice.
    fn limits(&self, slice: &str, found: &Inspection) -> Limits {
        let Some(cgroup) = found.cgroups.get(slice) else {
            return Limits::default();
        };
        let depth = slice_chain(slice).len() - 1;
        let outermost = (0..depth).fold(cgroup.as_str(), |path, _| {
            path.rsplit_once('/').map_or(path, |(outer, _)| outer)
        });
        Limits {
            io_weight: Limits::read(self.cgroups, outermost).io_weight,
            ..Limits::read(self.cgroups, cgroup)
        }
    }

    /// The control group of a unit; a slice is started for it.
    async fn started(&self, unit: &str) -> zbus::Result<Result<String, Problem>> {
        let view = if unit.ends_with(".slice") {
            match start(self.connection, &self.manager, unit).await? {
                Ok(view) => view,
                Err(problem) => return Ok(Err(problem)),
            }
        } else {
            units::view(self.connection, unit).await?
        };
        let cgroup = view.text("ControlGroup").to_owned();
        let why = if cgroup.is_empty() {
            format!("it is {}", state(&view))
        } else if !self.cgroups.exists(&cgroup) {
            format!(
                "systemd says {cgroup}, which is not below {}",
                self.cgroups.root().display()
            )
        } else {
            return Ok(Ok(cgroup));
        };
        Ok(Err(Problem::SliceMissing {
            slice: unit.to_owned(),
            why,
        }))
    }

    /// The budget of a slice, applied again where the kernel lags behind.
    async fn budget(&self, slice: &str) -> zbus::Result<((Wanted, Enforced), Vec<Problem>)> {
        let view = units::view(self.connection, slice).await?;
        let first = self.compare(slice, &view);
        if first.1.is_empty() {
            return Ok(first);
        }
        let same = [("Description", Value::from(view.text("Description")))];
        let view = match set_properties(self.connection, &self.manager, slice, &same).await {
            Ok(view) => view,
            Err(error) if units::error_name(&error).is_none() => return Err(error),
            Err(error) => {
                log::warn!(
                    "the budget of {slice} could not be applied again: {}",
                    words(&error)
                );
                return Ok(first);
            }
        };
        let second = self.compare(slice, &view);
        if second.1.is_empty() {
            log::info!("the budget of {slice} was not in the kernel, and is now");
        }
        Ok(second)
    }

    fn compare(&self, slice: &str, view: &UnitView) -> ((Wanted, Enforced), Vec<Problem>) {
        let wanted = Wanted::of(view);
        let cgroup = view.text("ControlGroup");
        // A slice without a group is reported as missing, not as unbounded.
        let Ok(folder) = self.cgroups.folder(cgroup) else {
            return ((wanted, Enforced::default()), Vec::new());
        };
        let enforced = Enforced::read(self.cgroups, cgroup);
        let problems = differences(slice, folder, wanted, &enforced);
        ((wanted, enforced), problems)
    }
}

async fn manager(connection: &Connection) -> zbus::Result<ManagerProxy<'static>> {
    ManagerProxy::builder(connection)
        .cache_properties(CacheProperties::No)
        .build()
        .await
}

/// Starts a slice when it is not active, and answers its properties after that.
///
/// The properties are read again until the job is through: a signal stream that is opened for this, and
/// not read while the call waits, could hold up the whole connection.
async fn start(
    connection: &Connection,
    manager: &ManagerProxy<'_>,
    slice: &str,
) -> zbus::Result<Result<UnitView, Problem>> {
    let missing = |why: String| {
        Ok(Err(Problem::SliceMissing {
            slice: slice.to_owned(),
            why,
        }))
    };
    let view = units::view(connection, slice).await?;
    if view.alive() {
        return Ok(Ok(view));
    }
    if let Err(error) = manager.start_unit(slice, "fail").await {
        return match units::error_name(&error) {
            None | Some(error_name::NO_REPLY) => Err(error),
            Some(_) => missing(words(&error)),
        };
    }
    let deadline = Instant::now() + START;
    loop {
        let view = units::view(connection, slice).await?;
        if view.alive() {
            return Ok(Ok(view));
        }
        if !has_job(&view) || Instant::now() >= deadline {
            return missing(format!("it is {} after its start", state(&view)));
        }
        Timer::after(LOOK).await;
    }
}

/// A job of the unit waits or runs: `Job` is its number and path, 0 without one.
fn has_job(view: &UnitView) -> bool {
    match view.value("Job") {
        Some(Value::Structure(job)) => !matches!(job.fields().first(), Some(Value::U32(0)) | None),
        _ => false,
    }
}

/// Such as `masked, inactive`.
fn state(view: &UnitView) -> String {
    let words = [view.text("LoadState"), view.text("ActiveState")];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

fn row(class: &Class, quota: Option<f64>, weight: Option<u64>, limits: Limits) -> ClassRow {
    let budget = &class.budget;
    let set = [
        (Property::Quota, budget.quota_usec_per_sec.is_some()),
        (Property::Weight, budget.weight.is_some()),
        (Property::MemoryHigh, budget.memory_high.is_some()),
        (Property::IoWeight, budget.io_weight.is_some()),
        (Property::TasksMax, budget.tasks_max.is_some()),
    ];
    ClassRow {
        name: class.name.clone(),
        slice: class.slice.clone(),
        // Rounded up, since 0 means none.
        quota: quota.map_or(0, |percent| percent.ceil() as u32),
        weight: weight.map_or(0, |weight| weight as u32),
        memory_high: limits.memory_high.unwrap_or(0),
        io_weight: limits.io_weight.map_or(0, |weight| weight as u32),
        tasks_max: limits.tasks_max.unwrap_or(0),
        from_settings: set
            .iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(property, _)| property.key().to_owned())
            .collect(),
    }
}

/// The text of an error, without its D-Bus name where it has one of its own.
fn words(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(_, Some(text), _) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
