//! Against a small systemd of our own on a socket pair, with recorded control groups.

mod own;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use futures_lite::{FutureExt, StreamExt, future};
use guard_policy::class::Class;
use guard_policy::health::Problem;
use zbus::message::Type;
use zbus::{Connection, Message, MessageStream};
use zvariant::{ObjectPath, OwnedValue, Value};

use super::{CPU_CONTROLLER, Inspection, ensure_started, inspect_within};
use crate::cgroup::CgroupFs;
use crate::units;

const MANAGER: &str = "/user.slice/user-1000.slice/user@1000.service";

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// One unit of the fake.
#[derive(Clone)]
struct Unit {
    active: bool,
    quota: u64,
    weight: u64,
    /// What the kernel's files say once systemd writes them.
    cpu_max: &'static str,
}

/// A user manager with a kernel below.
struct Fake {
    tree: tempfile::TempDir,
    units: RefCell<HashMap<String, Unit>>,
    calls: RefCell<Vec<String>>,
    /// `MemoryHigh` of the units that have one.
    memory: RefCell<HashMap<String, u64>>,
    /// The kernel's files are not written, whatever is asked.
    stubborn: bool,
    /// Slices that cannot be started.
    masked: &'static [&'static str],
}

impl Fake {
    fn new(controllers: &str) -> Fake {
        let fake = Fake {
            tree: tempfile::tempdir().unwrap(),
            units: RefCell::default(),
            calls: RefCell::default(),
            memory: RefCell::default(),
            stubborn: false,
            masked: &[],
        };
        fake.write(MANAGER, "cgroup.controllers", controllers);
        fake
    }

    fn unit(&self, name: &str, unit: Unit) {
        self.units.borrow_mut().insert(name.to_owned(), unit);
    }

    fn write(&self, cgroup: &str, file: &str, text: &str) {
        let folder = self.tree.path().join(&cgroup[1..]);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), format!("{text}\n")).unwrap();
    }

    fn cgroup(name: &str) -> String {
        let chain = guard_policy::class::slice_chain(name);
        format!(
            "{MANAGER}/{}",
            if name.ends_with(".slice") {
                chain.join("/")
            } else {
                name.to_owned()
            }
        )
    }

    /// Writes the kernel's files of a unit.
    fn apply(&self, name: &str) {
        let unit = self.units.borrow()[name].clone();
        let cgroup = Fake::cgroup(name);
        self.write(&cgroup, "cgroup.procs", "");
        if !unit.cpu_max.is_empty() {
            self.write(&cgroup, "cpu.max", unit.cpu_max);
            let weight = if unit.weight == u64::MAX {
                100
            } else {
                unit.weight
            };
            self.write(&cgroup, "cpu.weight", &weight.to_string());
        }
    }

    fn properties(&self, path: &str) -> HashMap<String, OwnedValue> {
        let own = |value: Value<'_>| OwnedValue::try_from(value).unwrap();
        let units = self.units.borrow();
        let Some((name, unit)) = units
            .iter()
            .find(|(name, _)| units::unit_path(name).as_str() == path)
        else {
            return HashMap::from([("LoadState".to_owned(), own(Value::from("not-found")))]);
        };
        let none = (0u32, ObjectPath::from_static_str_unchecked("/"));
        HashMap::from([
            ("LoadState".to_owned(), own(Value::from("loaded"))),
            (
                "ActiveState".to_owned(),
                own(Value::from(if unit.active { "active" } else { "inactive" })),
            ),
            ("Job".to_owned(), own(Value::from(none))),
            (
                "Description".to_owned(),
                own(Value::from(format!("About {name}"))),
            ),
            (
                "ControlGroup".to_owned(),
                own(Value::from(if unit.active {
                    Fake::cgroup(name)
                } else {
                    String::new()
                })),
            ),
            (
                "CPUQuotaPerSecUSec".to_owned(),
                own(Value::from(unit.quota)),
            ),
            ("CPUWeight".to_owned(), own(Value::from(unit.weight))),
            (
                "MemoryHigh".to_owned(),
                own(Value::from(
                    self.memory.borrow().get(name).copied().unwrap_or(u64::MAX),
                )),
            ),
        ])
    }

    fn set(&self, unit: &str, name: &str, number: u64) {
        let mut units = self.units.borrow_mut();
        let found = units.get_mut(unit).unwrap();
        match name {
            "CPUQuotaPerSecUSec" => found.quota = number,
            "CPUWeight" => found.weight = number,
            "MemoryHigh" => {
                self.memory.borrow_mut().insert(unit.to_owned(), number);
            }
            other => panic!("{other} is not set by this module"),
        }
    }

    async fn answer(&self, connection: &Connection, message: &Message) -> zbus::Result<()> {
        let header = message.header();
        let member = header.member().unwrap().as_str();
        let body = message.body();
        match member {
            "Get" => {
                assert_eq!(body.deserialize::<(String, String)>()?.1, "ControlGroup");
                connection.reply(&header, &Value::from(MANAGER)).await
            }
            "GetAll" => {
                connection
                    .reply(&header, &self.properties(header.path().unwrap()))
                    .await
            }
            "StartUnit" => {
                let (unit, _mode): (String, String) = body.deserialize()?;
                self.calls.borrow_mut().push(format!("start {unit}"));
                if self.masked.contains(&unit.as_str()) {
                    let text = format!("Unit {unit} is masked.");
                    return connection
                        .reply_error(&header, "org.freedesktop.systemd1.UnitMasked", &text)
                        .await;
                }
                self.units.borrow_mut().get_mut(&unit).unwrap().active = true;
                self.apply(&unit);
                connection
                    .reply(
                        &header,
                        &ObjectPath::from_static_str_unchecked("/org/job/1"),
                    )
                    .await
            }
            "SetUnitProperties" => {
                let (unit, runtime, properties): (String, bool, Vec<(String, OwnedValue)>) =
                    body.deserialize()?;
                assert!(runtime, "nothing may outlive the login");
                assert_eq!(properties.len(), 1);
                let name = properties[0].0.as_str();
                let told = match &*properties[0].1 {
                    Value::U64(number) => {
                        self.set(&unit, name, *number);
                        format!("set {unit} {name}={number}")
                    }
                    Value::U32(scale) => {
                        // Of a machine with 16 GB.
                        let amount = u128::from(*scale) * 16_000_000_000 / u128::from(u32::MAX);
                        let amount = u64::try_from(amount).unwrap();
                        self.set(&unit, name.strip_suffix("Scale").unwrap(), amount);
                        format!("set {unit} {name}={scale}")
                    }
                    text => {
                        assert_eq!(name, "Description");
                        assert_eq!(*text, Value::from(format!("About {unit}")));
                        format!("set {unit}")
                    }
                };
                self.calls.borrow_mut().push(told);
                if !self.stubborn {
                    self.apply(&unit);
                }
                connection.reply(&header, &()).await
            }
            other => panic!("{other} is not a call of this module"),
        }
    }

    async fn serve(&self, connection: Connection, mut messages: MessageStream) {
        while let Some(message) = messages.next().await {
            let Ok(message) = message else { return };
            if message.message_type() == Type::MethodCall {
                self.answer(&connection, &message).await.unwrap();
            }
        }
    }

    /// Runs `work` with a connection to the fake.
    fn with<T>(&self, work: impl AsyncFnOnce(&Connection) -> T) -> T {
        async_io::block_on(async {
            let (server, client) = UnixStream::pair().unwrap();
            let server = zbus::connection::Builder::async_io_unix_stream(server)
                .server(zbus::Guid::generate())
                .unwrap()
                .p2p()
                .build();
            let client = zbus::connection::Builder::async_io_unix_stream(client)
                .p2p()
                .build();
            let (server, client) = future::try_zip(server, client).await.unwrap();
            // Before the first call is sent: what arrives while nobody listens is lost.
            let messages = MessageStream::from(&server);
            let served = async {
                self.serve(server, messages).await;
                panic!("the fake's connection ended early")
            };
            work(&client).or(served).await
        })
    }

    fn inspect(&self, classes: &[Class], parents: &[&str]) -> Inspection {
        let cgroups = CgroupFs::rooted(self.tree.path());
        let parents: Vec<String> = parents.iter().map(|unit| unit.to_string()).collect();
        self.with(async |connection| {
            inspect_within(PATIENCE, connection, &cgroups, classes, &parents).await
        })
    }

    fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }
}

fn heavy() -> Vec<Class> {
    vec![Class::new("heavy", "heavy-workload.slice")]
}

/// A fake whose heavy slices have their budgets, in systemd and in the kernel.
fn installed(controllers: &str) -> Fake {
    let fake = Fake::new(controllers);
    let outer = Unit {
        active: true,
        quota: u64::MAX,
        weight: 100,
        cpu_max: "max 100000",
    };
    fake.unit("heavy.slice", outer);
    fake.unit(
        "heavy-workload.slice",
        Unit {
            active: true,
            quota: 4_000_000,
            weight: 100,
            cpu_max: "400000 100000",
        },
    );
    fake.unit(
        "protected.slice",
        Unit {
            active: true,
            quota: u64::MAX,
            weight: 1000,
            cpu_max: "max 100000",
        },
    );
    for unit in ["heavy.slice", "heavy-workload.slice", "protected.slice"] {
        fake.apply(unit);
    }
    fake
}

#[test]
fn budgets_that_hold_are_shown_and_left_alone() {
    let fake = installed("cpu memory pids");
    let found = fake.inspect(&heavy(), &["protected.slice"]);
    assert_eq!(found.problems, []);
    assert_eq!(found.capabilities, [CPU_CONTROLLER]);
    assert_eq!(
        (found.classes[0].quota, found.classes[0].weight),
        (400, 100)
    );
    assert_eq!(
        found.cgroups["heavy-workload.slice"],
        format!("{MANAGER}/heavy.slice/heavy-workload.slice")
    );
    assert_eq!(
        found.cgroups["protected.slice"],
        format!("{MANAGER}/protected.slice")
    );
    assert!(fake.calls().is_empty(), "{:?}", fake.calls());
}

#[test]
fn an_inactive_slice_is_started() {
    let fake = installed("cpu memory pids");
    fake.units
        .borrow_mut()
        .get_mut("heavy-workload.slice")
        .unwrap()
        .active = false;
    let found = fake.inspect(&heavy(), &[]);
    assert_eq!(found.problems, []);
    assert_eq!(fake.calls(), ["start heavy-workload.slice"]);
    assert!(found.cgroups.contains_key("heavy-workload.slice"));
}

#[test]
fn a_kernel_that_lags_behind_gets_the_budget_again() {
    // As systemd 257 leaves it: the properties of the new unit files, the kernel's old values.
    let fake = installed("cpu memory pids");
    let cgroup = Fake::cgroup("heavy-workload.slice");
    fake.write(&cgroup, "cpu.max", "max 100000");
    let found = fake.inspect(&heavy(), &[]);
    assert_eq!(found.problems, []);
    assert_eq!(fake.calls(), ["set heavy-workload.slice"]);
    assert_eq!(found.classes[0].quota, 400);
}

#[test]
fn a_budget_that_the_kernel_never_takes_is_a_problem() {
    let mut fake = installed("cpu memory pids");
    fake.stubborn = true;
    fake.write(&Fake::cgroup("heavy.slice"), "cpu.weight", "700");
    fake.write(
        &Fake::cgroup("heavy-workload.slice"),
        "cpu.max",
        "150000 100000",
    );
    let found = fake.inspect(&heavy(), &[]);
    let told: Vec<(String, String)> = found
        .problems
        .iter()
        .map(|problem| match problem {
            Problem::BudgetNotInKernel { unit, kernel, .. } => (unit.clone(), kernel.clone()),
            other => panic!("{other}"),
        })
        .collect();
    let pair = |unit: &str, kernel: &str| (unit.to_owned(), kernel.to_owned());
    assert_eq!(
        told,
        [
            pair("heavy.slice", "700"),
            pair("heavy-workload.slice", "150000 100000")
        ]
    );
    // What is shown is what the kernel does.
    assert_eq!(
        (found.classes[0].quota, found.classes[0].weight),
        (150, 700)
    );
}

#[test]
fn without_the_controller_one_problem_says_it_all() {
    let fake = installed("memory pids");
    fs::remove_file(
        fake.tree
            .path()
            .join(&Fake::cgroup("heavy-workload.slice")[1..])
            .join("cpu.max"),
    )
    .unwrap();
    let found = fake.inspect(&heavy(), &[]);
    let controllers_file = fake
        .tree
        .path()
        .join(&MANAGER[1..])
        .join("cgroup.controllers")
        .display()
        .to_string();
    assert_eq!(
        found.problems,
        [Problem::NoCpuController { controllers_file }]
    );
    assert!(found.capabilities.is_empty() && fake.calls().is_empty());
    assert_eq!((found.classes[0].quota, found.classes[0].weight), (0, 0));
    assert!(
        found.cgroups.contains_key("heavy-workload.slice"),
        "routing works all the same"
    );
}

#[test]
fn a_class_without_a_quota_anywhere_is_told() {
    let fake = installed("cpu memory pids");
    let bare = Unit {
        active: true,
        quota: u64::MAX,
        weight: u64::MAX,
        cpu_max: "",
    };
    fake.unit("heavy-workload.slice", bare);
    fs::remove_dir_all(
        fake.tree
            .path()
            .join(&Fake::cgroup("heavy-workload.slice")[1..]),
    )
    .unwrap();
    fake.apply("heavy-workload.slice");
    let slice = "heavy-workload.slice".to_owned();
    assert_eq!(
        fake.inspect(&heavy(), &[]).problems,
        [Problem::NoBudget {
            slice,
            class: "heavy".to_owned()
        }]
    );

    // A quota around it bounds it as well.
    fake.unit(
        "heavy.slice",
        Unit {
            active: true,
            quota: 4_000_000,
            weight: 100,
            cpu_max: "400000 100000",
        },
    );
    fake.apply("heavy.slice");
    let found = fake.inspect(&heavy(), &[]);
    assert_eq!((found.problems, found.classes[0].quota), (vec![], 400));
}

#[test]
fn a_unit_without_a_group_is_told_with_its_reason() {
    let mut fake = installed("cpu memory pids");
    fake.masked = &["heavy-workload.slice"];
    fake.units
        .borrow_mut()
        .get_mut("heavy-workload.slice")
        .unwrap()
        .active = false;
    let found = fake.inspect(&heavy(), &["app-gone.scope"]);
    let missing = |slice: &str, why: &str| Problem::SliceMissing {
        slice: slice.to_owned(),
        why: why.to_owned(),
    };
    assert!(
        found
            .problems
            .contains(&missing("app-gone.scope", "it is not-found")),
        "{:?}",
        found.problems
    );
    assert!(
        found.problems.contains(&missing(
            "heavy-workload.slice",
            "Unit heavy-workload.slice is masked."
        )),
        "{:?}",
        found.problems
    );
    assert!(!found.cgroups.contains_key("heavy-workload.slice"));
}

#[test]
fn a_manager_that_is_away_is_told() {
    let (server, client) = UnixStream::pair().unwrap();
    let found = async_io::block_on(async {
        let server = zbus::connection::Builder::async_io_unix_stream(server)
            .server(zbus::Guid::generate())
            .unwrap()
            .p2p()
            .build();
        let client = zbus::connection::Builder::async_io_unix_stream(client)
            .p2p()
            .build();
        let (server, client) = future::try_zip(server, client).await.unwrap();
        drop(server);
        inspect_within(
            PATIENCE,
            &client,
            &CgroupFs::rooted("/nonexistent"),
            &heavy(),
            &[],
        )
        .await
    });
    assert!(
        matches!(found.problems[..], [Problem::NoSystemd(_)]),
        "{:?}",
        found.problems
    );
    assert_eq!(found.classes[0].name, "heavy");
}

#[test]
fn starting_tells_what_could_not_be_started() {
    let mut fake = installed("cpu memory pids");
    fake.masked = &["heavy-workload.slice"];
    for unit in fake.units.borrow_mut().values_mut() {
        unit.active = false;
    }
    let slices = [
        "protected.slice".to_owned(),
        "heavy-workload.slice".to_owned(),
    ];
    let problems = fake.with(async |connection| ensure_started(connection, &slices).await.unwrap());
    assert_eq!(
        fake.calls(),
        ["start protected.slice", "start heavy-workload.slice"]
    );
    assert_eq!(problems.len(), 1);
}
