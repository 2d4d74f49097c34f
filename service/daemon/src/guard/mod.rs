//! The guard: one loop, one writer of state.
//!
//! Whatever happens becomes a [`Wake`]; the engine decides what follows; moves run one after the other
//! on a thread of their own, and their outcomes come back as further wakes.

mod budgets;
mod explain;
mod health;
mod history;
mod holds;
mod learning;
mod moves;
mod programs;
mod publish;
mod quota;
mod reconcile;
mod requests;
mod runner;
mod sample;
mod taken;
mod throttling;
mod wake;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_io::Timer;
use futures::channel::mpsc::UnboundedReceiver;
use futures_lite::future;
use guard_policy::engine::Engine;
use guard_policy::event::{Event, Ticket};
use guard_policy::holds::HoldEvent;
use guard_policy::id::Moment;
use guard_system::cgroup::CgroupFs;
use guard_system::clock;
use guard_system::mover::Mover;
use guard_system::proc::ProcFs;
use guard_system::sampler::Sampler;
use guard_system::watch::ManagerEvent;
use zbus::fdo::DBusProxy;

use crate::bus::{Command, Commands};
use crate::config::Config;
use crate::history::{History, Tally};
use crate::hold_file::HoldFile;
use crate::learned::LearnedFile;
use crate::notify::Notifier;
use crate::owners::Owners;
use crate::paths::Paths;
use crate::published::{Board, Totals};
use crate::record::Record;
use crate::signals::Signals;
use crate::store::Store;

use budgets::Budgets;
use health::Health;
use history::Snapshots;
use holds::HoldAnswer;
use learning::Learning;
use moves::Jobs;
use programs::Programs;
use quota::Steering;
use throttling::Throttling;
use wake::{Waiting, Wake};

/// Everything that the loop owns.
pub struct Guard {
    connection: zbus::Connection,
    mover: Arc<Mover>,
    proc: ProcFs,
    cgroups: CgroupFs,
    sampler: Sampler,
    programs: Programs,
    engine: Engine,
    config: Config,
    paths: Paths,
    /// By scope. The one place that knows where work came from; `store` mirrors it on disk.
    routes: BTreeMap<String, Record>,
    store: Store,
    hold_file: HoldFile,
    owners: Owners,
    /// Answers that wait until disk and bus say the same.
    hold_answers: Vec<HoldAnswer>,
    health: Health,
    learning: Learning,
    budgets: Budgets,
    steering: Steering,
    jobs: Jobs,
    /// systemd was reloaded or replaced: what it has is to be compared with what we know.
    reconcile_due: bool,
    waiting: HashMap<Ticket, Waiting>,
    last_ticket: u64,
    totals: Totals,
    tally: Arc<Tally>,
    snapshots: Snapshots,
    /// Processes of each scope at the last sample.
    scope_pids: HashMap<String, Vec<u32>>,
    throttling: Throttling,
    /// Processes of each watched unit at the last sample.
    watched: Vec<(String, u32)>,
    board: Board,
    commands: Commands,
    notifier: Notifier,
    /// On the clock that goes on while the machine sleeps.
    started: Duration,
    /// How long it had slept at the last look.
    asleep: Duration,
}

impl Guard {
    /// Connects the parts and takes over what an earlier guard left: after this the state is true.
    pub async fn new(
        connection: zbus::Connection,
        paths: Paths,
        board: Board,
        commands: Commands,
        history: History,
    ) -> anyhow::Result<Guard> {
        let (config, problem) = match Config::load(&paths.config) {
            Ok(config) => (config, None),
            Err(error) => (Config::builtin(), Some(error)),
        };
        let proc = ProcFs::new(PathBuf::from("/proc"));
        let cgroups = CgroupFs::detect()?;
        let mover = Mover::new(&connection, proc.clone(), cgroups.clone())
            .await
            .context(
                "systemd's user manager does not answer on this bus; start the guard with \
                 `systemctl --user start workload-guard`",
            )?;
        let mover = Arc::new(mover);
        let bus_id = DBusProxy::new(&connection).await?.get_id().await?;
        let mut guard = Guard {
            sampler: Sampler::new(cgroups.clone(), proc.clone()),
            programs: Programs::open(),
            engine: Engine::new(config.settings.clone(), config.rules.clone()),
            store: Store::new(&paths.runtime),
            hold_file: HoldFile::new(&paths.runtime, bus_id.to_string()),
            owners: Owners::new(connection.clone()),
            hold_answers: Vec::new(),
            health: Health::new(problem),
            learning: Learning::new(LearnedFile::new(paths.state.as_deref())),
            budgets: Budgets::load(&paths.runtime),
            steering: Steering::new(&paths.runtime, cgroups.clone()),
            jobs: Jobs::default(),
            reconcile_due: false,
            routes: BTreeMap::new(),
            waiting: HashMap::new(),
            last_ticket: 0,
            totals: Totals::default(),
            tally: Arc::default(),
            snapshots: Snapshots::new(history),
            scope_pids: HashMap::new(),
            throttling: Throttling::default(),
            watched: Vec::new(),
            notifier: Notifier::from_environment(),
            started: clock::since_boot(),
            asleep: clock::asleep(),
            connection,
            mover,
            proc,
            cgroups,
            config,
            paths,
            board,
            commands,
        };
        for warning in &guard.config.warnings {
            log::warn!("{warning}");
        }
        guard.configure_shadow();
        guard.remember();
        guard.routes = guard.store.load();
        guard.check_health().await;
        guard.reconcile().await;
        guard.restore_holds();
        guard.start_steering().await;
        guard.publish().await;
        Ok(guard)
    }

    /// What looks at processes and moves them.
    pub fn mover(&self) -> Arc<Mover> {
        self.mover.clone()
    }

    /// Runs until a signal ends it, or the bus is lost.
    pub async fn run(
        mut self,
        mut commands: UnboundedReceiver<Command>,
        signals: Signals,
    ) -> anyhow::Result<()> {
        let mut manager = self.mover.events();
        let watchdog = Notifier::watchdog_interval();
        let mut next_sample = Instant::now();
        let mut next_ping = watchdog.map(|_| Instant::now());
        let mut changed = true;
        loop {
            // Not after news of programs that are none of ours: a fork storm brings many.
            if std::mem::replace(&mut changed, true) {
                self.settle().await;
            }
            let parents = self.health.parent_cgroups(&self.config.settings);
            let due = [next_ping, self.next_hold_end(), Some(self.steering.due)]
                .into_iter()
                .flatten()
                .fold(next_sample, Instant::min);
            let wake = future::or(
                wake::stop(&signals),
                future::or(
                    future::or(
                        // Before what callers want: else those who take and leave without a pause fill the holds up.
                        future::or(
                            async { Wake::OwnerLeft(self.owners.next().await) },
                            wake::command(&mut commands),
                        ),
                        future::or(self.jobs.next(), self.steering.drop_ins()),
                    ),
                    future::or(
                        wake::manager(&mut manager),
                        future::or(
                            async {
                                Timer::at(due).await;
                                Wake::Timer
                            },
                            self.programs.next(&self.proc, &parents),
                        ),
                    ),
                ),
            )
            .await;
            match wake {
                Wake::Timer => {
                    let now = Instant::now();
                    self.end_due_holds();
                    if let (Some(ping), Some(interval)) = (next_ping, watchdog)
                        && now >= ping
                    {
                        self.notifier.watchdog();
                        next_ping = Some(now + interval);
                    }
                    if now >= next_sample {
                        self.sample().await;
                        self.programs.looked_at_everything(now.elapsed());
                        // From the planned moment, so that the pace is kept; from now when that has
                        // passed already, so that a slow machine is not sampled in bursts.
                        let interval = self.config.settings.sampling.interval;
                        next_sample = (next_sample + interval).max(Instant::now());
                    }
                    if now >= self.steering.due {
                        self.steer().await;
                    }
                }
                Wake::DropIns => self.look_at_quota().await,
                Wake::Programs(told) => {
                    let news = self.told_of_programs(told, &parents);
                    changed = news.changed;
                    if news.scan {
                        next_sample = next_sample.min(self.programs.make_good_at());
                    }
                }
                Wake::Command(Command::Reload { answer }) => {
                    let outcome = self.reload();
                    next_sample = next_sample.min(self.look_after_reload().await);
                    let _ = answer.send(outcome);
                }
                Wake::Command(Command::Watch { units, add, answer }) => {
                    let outcome = self.watch(&units, add);
                    next_sample = next_sample.min(self.look_after_reload().await);
                    let _ = answer.send(outcome);
                }
                Wake::Command(command) => self.command(command).await,
                Wake::OwnerLeft(name) => self.decide(Event::Hold(HoldEvent::OwnerLeft(name))),
                Wake::Finished(finished) => self.finished(finished).await,
                Wake::Manager(event) => self.manager(event).await,
                Wake::Stop => break,
                Wake::Disconnected => {
                    anyhow::bail!(
                        "the user bus closed the connection; the next start takes over what is routed"
                    )
                }
            }
        }
        self.notifier.stopping();
        self.save_learned(Duration::ZERO);
        // The runtime value would outlive us until the user logs out.
        self.put_quota_back().await;
        self.put_budgets_back().await;
        log::info!(
            "stopping; {} workloads stay where they are, bounded by their slices",
            self.routes.len()
        );
        Ok(())
    }

    /// Brings slices and bus up to settings that may be new; answers when the next sample is due.
    async fn look_after_reload(&mut self) -> Instant {
        self.check_health().await;
        self.settle_quota().await;
        self.publish().await;
        Instant::now() + self.config.settings.sampling.interval
    }

    /// Time since the guard started, sleep included: to the engine a suspend is a gap, after which
    /// counting starts afresh.
    fn now(&self) -> Moment {
        Moment(clock::since_boot().saturating_sub(self.started))
    }

    /// Brings disk, bus and service manager up to what is true now.
    async fn settle(&mut self) {
        // Not beside a move: a scope that is being made looks like one that nobody is in.
        if self.reconcile_due && !self.jobs.is_running() {
            self.reconcile_due = false;
            self.reconcile().await;
        }
        self.start_next();
        self.store.save(self.routes.values());
        self.hold_file.save(self.engine.holds());
        self.follow_owners().await;
        self.publish().await;
        self.answer_about_holds();
    }

    /// Lets the engine decide, and queues what follows.
    fn decide(&mut self, event: Event) {
        let now = self.now();
        for action in self.engine.step(event, now) {
            self.act(action);
        }
    }

    /// What systemd said.
    async fn manager(&mut self, event: ManagerEvent) {
        match event {
            // Told late, it is about an earlier scope of the same name.
            ManagerEvent::ScopeRemoved { unit } if self.still_there(&unit) => {}
            ManagerEvent::ScopeRemoved { unit } => self.gone(&unit).await,
            // Values of unit files that changed under an active slice may not be in the kernel, and
            // signals of what ended meanwhile are lost: look at both again.
            ManagerEvent::Reloaded | ManagerEvent::ManagerReplaced => {
                self.check_health().await;
                self.look_at_quota().await;
                self.reconcile_due = true;
            }
        }
    }

    /// The scope of a workload is gone by itself.
    async fn gone(&mut self, unit: &str) {
        // A recovery empties the scope; its outcome tells the rest.
        if self.jobs.concerns(unit) {
            return;
        }
        if let Some(record) = self.routes.remove(unit) {
            self.tell_the_end(&record.route);
            self.throttling.ended(&record.route);
            self.decide(Event::Gone {
                unit: unit.to_owned(),
            });
            // The object is gone before anybody is told that it is.
            self.publish().await;
            self.signal_end(&record.route).await;
        }
    }

    /// Reads the settings again.
    fn reload(&mut self) -> Result<(), workload_guard_dbus::GuardError> {
        match Config::load(&self.paths.config) {
            Ok(config) => {
                for warning in &config.warnings {
                    log::warn!("{warning}");
                }
                self.engine
                    .configure(config.settings.clone(), config.rules.clone());
                self.config = config;
                self.configure_shadow();
                self.health.settings_are_good();
                log::info!("settings read again");
                Ok(())
            }
            Err(error) => {
                log::error!("settings kept as they were: {error}");
                Err(workload_guard_dbus::GuardError::InvalidSettings(error))
            }
        }
    }
}

/// How long between two looks at what budgets the kernel holds, and at slices that are missing.
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);
