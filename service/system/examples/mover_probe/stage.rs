//! What each case stands on: sources with work in them, and questions to systemd.

use std::cell::RefCell;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_io::Timer;
use guard_policy::action::{Move, Placement, Why};
use guard_policy::class::Class;
use guard_policy::id::ProcId;
use guard_system::cgroup::CgroupFs;
use guard_system::mover::{Mover, Route};
use guard_system::proc::ProcFs;
use guard_system::units::{self, UnitView};
use workload_guard_dbus::systemd1::ManagerProxy;
use zvariant::Value;

/// How a case that did not fail went.
pub enum Outcome {
    Pass(String),
    Skip(String),
}

/// A failure, with where it happened.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Outcome>> + 'a>>;

/// Fails the case with a text unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!("{}:{}: {}", file!(), line!(), format!($($text)+)).into());
        }
    };
}

pub const PASS: Result<Outcome> = Ok(Outcome::Pass(String::new()));

pub struct Stage {
    pub conn: zbus::Connection,
    pub manager: ManagerProxy<'static>,
    pub mover: Mover,
    pub proc: ProcFs,
    pub cgroups: CgroupFs,
    children: RefCell<Vec<Child>>,
}

impl Stage {
    pub async fn new() -> Result<Stage> {
        let conn = guard_system::bus::connect().await?;
        let proc = ProcFs::default();
        let cgroups = CgroupFs::detect()?;
        Ok(Stage {
            manager: ManagerProxy::new(&conn).await?,
            mover: Mover::new(&conn, proc.clone(), cgroups.clone()).await?,
            conn,
            proc,
            cgroups,
            children: RefCell::default(),
        })
    }

    /// Ends everything that the case made, and checks that no scope of ours is left.
    pub async fn clear(&self) -> Result<()> {
        for child in self.children.borrow_mut().iter_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for pattern in ["lwg-*.scope", "probe-*"] {
            for row in self.manager.list_units_by_patterns(&[], &[pattern]).await? {
                let _ = self.manager.stop_unit(&row.0, "replace").await;
                let _ = self.manager.reset_failed_unit(&row.0).await;
            }
        }
        let left = async || {
            let rows = self
                .manager
                .list_units_by_patterns(&[], &["lwg-*.scope", "probe-*"])
                .await?;
            Ok::<_, zbus::Error>(
                rows.into_iter()
                    .map(|row| (row.0, row.3, row.4))
                    .collect::<Vec<_>>(),
            )
        };
        match self
            .eventually("no scope of ours is left", async || {
                Ok(left().await?.is_empty())
            })
            .await
        {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{error}: {:?}", left().await?).into()),
        }
    }

    /// Starts a child of ours, which is in our own unit at first.
    pub fn child(&self, argv: &[&str]) -> Result<ProcId> {
        let child = Command::new(argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child.id();
        self.children.borrow_mut().push(child);
        self.id(pid)
    }

    pub fn id(&self, pid: u32) -> Result<ProcId> {
        Ok(self.proc.identify(pid)?.ok_or(format!("{pid} is gone"))?)
    }

    /// Puts processes into a new scope, as a desktop does it. Answers its control group.
    pub async fn scope(
        &self,
        name: &str,
        properties: &[(&str, Value<'_>)],
        ids: &[ProcId],
    ) -> Result<String> {
        let pids: Vec<u32> = ids.iter().map(|id| id.pid).collect();
        let mut all: Vec<(&str, Value<'_>)> = vec![
            ("PIDs", Value::from(pids)),
            ("Slice", Value::from("app.slice")),
        ];
        for (name, value) in properties {
            all.push((*name, value.try_clone()?));
        }
        self.manager
            .start_transient_unit(name, "fail", &all, &[])
            .await?;
        // systemd moves them one by one.
        self.eventually(name, async || {
            Ok(ids.iter().all(|id| self.cgroup(*id).contains(name)))
        })
        .await?;
        Ok(self.cgroup(ids[0]))
    }

    /// A new scope around one new process that sleeps.
    pub async fn sleeper(
        &self,
        name: &str,
        properties: &[(&str, Value<'_>)],
    ) -> Result<(ProcId, String)> {
        let id = self.child(&["sleep", "1000"])?;
        let cgroup = self.scope(name, properties, &[id]).await?;
        Ok((id, cgroup))
    }

    pub fn cgroup(&self, id: ProcId) -> String {
        self.proc.cgroup(id.pid).unwrap_or_default()
    }

    pub fn alive(&self, id: ProcId) -> bool {
        self.proc.is_alive(id).unwrap_or(false)
    }

    pub async fn unit(&self, name: &str) -> Result<UnitView> {
        Ok(units::view(&self.conn, name).await?)
    }

    pub async fn route(&self, root: ProcId) -> Result<Route> {
        Ok(self
            .mover
            .route(&order(root, Placement::Routed), &heavy())
            .await?)
    }

    /// Waits, by looking again, for what comes soon; 20 s is an error.
    pub async fn eventually(
        &self,
        what: &str,
        holds: impl AsyncFn() -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds().await? {
            check!(Instant::now() < deadline, "never came true: {what}");
            Timer::after(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Runs a program to its end.
    pub fn run(&self, argv: &[&str]) -> Result<String> {
        let output = Command::new(argv[0]).args(&argv[1..]).output()?;
        check!(
            output.status.success(),
            "{argv:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The PIDs of a control group.
    pub fn pids(&self, cgroup: &str) -> Vec<u32> {
        self.cgroups.pids(cgroup).unwrap_or_default()
    }
}

pub fn order(root: ProcId, placement: Placement) -> Move {
    Move {
        processes: vec![root],
        class: "heavy".to_owned(),
        placement,
        why: Why::Asked {
            reason: "probe".to_owned(),
        },
        ticket: None,
    }
}

pub fn heavy() -> Class {
    Class::new("heavy", "heavy-workload.slice")
}

pub fn protected() -> Class {
    Class::new("protected", "protected-workload.slice")
}

/// A program, if it is installed.
pub fn installed(program: &str) -> bool {
    ["/bin", "/usr/bin", "/usr/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}
