//! The object of `org.workloadguard.BenchPrep1`: it lets through or refuses, takes turns, and has the work done on a
//! thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bench_profile::profile::Profile;
use bench_system::entries::next;
use workload_guard_dbus::bench_prep1::Call;
use workload_guard_dbus::bench_types::{CheckRow, EntryRow, KnobRow};
use workload_guard_dbus::{BenchError, BenchPrep1, BenchPrep1Backend, names};
use zvariant::OwnedValue;

use crate::access::Gate;
use crate::activity::Activity;
use crate::prepare::Preparer;
use crate::turn::Turns;
use crate::{entries, options, rows, work};

/// Serves [`BenchPrep1Backend`].
pub struct BenchObject {
    connection: zbus::Connection,
    gate: Gate,
    activity: Activity,
    turns: Turns,
    /// Anybody may check, as often as the bus lets them, so one look at the machine is taken at a time.
    checks: Turns,
    preparer: Preparer,
    /// As long as this boot lasts.
    booted: Result<Option<Profile>, BenchError>,
    /// What the last change left.
    applied: Arc<Mutex<Option<Profile>>>,
    /// As long as this service runs.
    loader: String,
    /// What the loader was told last.
    next: Arc<Mutex<Option<Profile>>>,
}

impl BenchObject {
    /// An object that changes nothing until it is asked.
    pub fn new(
        connection: zbus::Connection,
        gate: Gate,
        activity: Activity,
        turns: Turns,
        preparer: Preparer,
    ) -> BenchObject {
        let booted = preparer.booted();
        if let Err(error) = &booted {
            log::warn!("{}", error.text());
        }
        BenchObject {
            connection,
            gate,
            activity,
            turns,
            checks: Turns::default(),
            booted,
            applied: Arc::new(Mutex::new(preparer.applied())),
            loader: entries::loader(preparer.root()),
            next: Arc::new(Mutex::new(next::pending(preparer.root()))),
            preparer,
        }
    }

    /// Does `work` as the one change at this time, and tells everyone when that changes a property.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Preparer) -> Result<T, BenchError> + Send + 'static,
    ) -> Result<T, BenchError> {
        let turn = self.turns.take()?;
        let preparer = self.preparer.clone();
        let (applied, next) = (self.applied.clone(), self.next.clone());
        let before = (self.applied(), self.next_profile());
        // The turn goes along: it ends with the work, whatever becomes of this call.
        let done = work::apart(move || {
            let result = work(&preparer);
            set(&applied, preparer.applied());
            set(&next, next::pending(preparer.root()));
            drop(turn);
            result
        })
        .await
        .unwrap_or_else(broke_off);
        self.tell((self.applied() != before.0, self.next_profile() != before.1))
            .await;
        done
    }

    /// Tells of changes of Applied and of NextProfile.
    async fn tell(&self, (applied, next): (bool, bool)) {
        if !applied && !next {
            return;
        }
        let server = self.connection.object_server();
        let told = async {
            let object = server
                .interface::<_, BenchPrep1<BenchObject>>(names::BENCH_PATH)
                .await?;
            let ours = object.get().await;
            if applied {
                ours.applied_changed(object.signal_emitter()).await?;
            }
            if next {
                ours.next_profile_changed(object.signal_emitter()).await?;
            }
            zbus::Result::Ok(())
        };
        if let Err(error) = told.await {
            log::warn!("a change was told to nobody: {error}");
        }
    }

    /// The profile of that name, or with the empty one that of the boot.
    fn profile(&self, name: &str) -> Result<Profile, BenchError> {
        if name.is_empty() {
            return self.booted.clone()?.ok_or_else(|| {
                BenchError::WrongProfile(
                    "this boot is in no profile (its kernel command line has no bench_profile): name one, or boot its \
                     entry"
                        .into(),
                )
            });
        }
        name.parse()
            .map_err(|error: bench_profile::profile::UnknownProfile| {
                BenchError::WrongProfile(error.to_string())
            })
    }
}

fn broke_off<T>() -> Result<T, BenchError> {
    Err(BenchError::KnobFailed(
        "the service broke off in the middle of it, which is a defect of its own (see its journal); what was changed is \
         recorded, and Restore puts it back"
            .into(),
    ))
}

impl BenchPrep1Backend for BenchObject {
    async fn apply(
        &self,
        call: Call,
        name: String,
        given: HashMap<String, OwnedValue>,
    ) -> Result<Vec<KnobRow>, BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        let options = options::parse(given)?;
        let profile = self.profile(&name)?;
        self.change(move |preparer| preparer.apply(profile, options).map(rows::of))
            .await
    }

    async fn restore(&self, call: Call) -> Result<Vec<KnobRow>, BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        self.change(|preparer| preparer.restore().map(rows::of))
            .await
    }

    async fn check(
        &self,
        call: Call,
        expected: String,
    ) -> Result<(bool, Vec<CheckRow>), BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        let profile = self.profile(&expected)?;
        let turn = self.checks.wait().await;
        let preparer = self.preparer.clone();
        work::apart(move || {
            let found = preparer.check(profile);
            drop(turn);
            Ok(found)
        })
        .await
        .unwrap_or_else(broke_off)
    }

    async fn preview_boot_entries(
        &self,
        call: Call,
    ) -> Result<(String, String, Vec<String>), BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        let turn = self.checks.wait().await;
        let preparer = self.preparer.clone();
        work::apart(move || {
            let plan = entries::preview(preparer.root());
            drop(turn);
            plan
        })
        .await
        .unwrap_or_else(broke_off)
    }

    async fn regenerate_boot_entries(
        &self,
        call: Call,
    ) -> Result<(Vec<EntryRow>, Vec<String>), BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        self.change(|preparer| entries::regenerate(preparer.root()))
            .await
    }

    async fn set_next_boot(&self, call: Call, name: String) -> Result<String, BenchError> {
        let _call = self.activity.begin();
        self.gate.pass(&call).await?;
        // Empty takes it back: the profile of this boot is not meant here.
        let profile = match name.as_str() {
            "" => None,
            name => Some(self.profile(name)?),
        };
        self.change(move |preparer| {
            let (root, systemd) = (preparer.root(), preparer.systemd());
            match profile {
                Some(profile) => entries::set_next(root, systemd, profile),
                None => entries::clear_next(root, systemd).map(|()| String::new()),
            }
        })
        .await
    }

    fn boot_loader(&self) -> String {
        self.activity.touch();
        self.loader.clone()
    }

    fn next_profile(&self) -> String {
        self.activity.touch();
        name(*self.next.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn booted_profile(&self) -> String {
        self.activity.touch();
        name(self.booted.clone().ok().flatten())
    }

    fn applied(&self) -> String {
        self.activity.touch();
        name(*self.applied.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn set(shared: &Mutex<Option<Profile>>, profile: Option<Profile>) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = profile;
}

fn name(profile: Option<Profile>) -> String {
    profile
        .map(|profile| profile.to_string())
        .unwrap_or_default()
}
