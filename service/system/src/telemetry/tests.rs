use std::fs;
use std::path::Path;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Machine {
    folder: tempfile::TempDir,
    sensor: Sensor,
}

const PSI: &str = "some avg10=25.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let sensor = Sensor::new(
            folder.path().join("proc"),
            CgroupFs::rooted(folder.path().join("cgroup")),
        );
        let machine = Machine { folder, sensor };
        machine.write("proc/pressure/cpu", PSI);
        machine.write("proc/self/schedstat", "1000 5000000 3\n");
        machine.write("cgroup/p.slice/cpu.pressure", PSI);
        machine.stat("p.slice/p-w.slice", [0, 0, 0]);
        machine.stat("h.slice", [1_000_000, 100, 10]);
        machine
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("made");
        fs::write(path, text).expect("written");
    }

    fn stat(&self, group: &str, [usage, periods, throttled]: [u64; 3]) {
        let text = format!(
            "usage_usec {usage}\nuser_usec 0\nsystem_usec 0\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 0\n"
        );
        self.write(&format!("cgroup/{group}/cpu.stat"), &text);
    }

    fn look(&mut self, seconds: u32) -> Look {
        let groups = Groups {
            heavy: Some("/h.slice".to_owned()),
            protected: Some("/p.slice/p-w.slice".to_owned()),
            protected_outermost: Some("/p.slice".to_owned()),
        };
        self.sensor.look(&groups, SECOND * seconds)
    }
}

fn broken(signal: &Signal) -> &str {
    match signal {
        Signal::Broken(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn growths_wait_for_a_second_look_and_pressures_do_not() {
    let mut machine = Machine::new();
    let first = machine.look(0);
    assert_eq!(first.telemetry.pressure, Signal::now(0.25));
    assert_eq!(first.telemetry.protected_pressure, Signal::now(0.25));
    assert_eq!(first.telemetry.delay_ms, Signal::Pending);
    assert_eq!(first.telemetry.throttled, Signal::Pending);
    assert_eq!(first.heavy_usage, None);
    machine.write("proc/self/schedstat", "1000 29000000 3\n");
    machine.stat("h.slice", [9_000_000, 150, 20]);
    let second = machine.look(4);
    let of = |value| Signal::Read {
        value,
        age: SECOND * 4,
    };
    assert_eq!(second.telemetry.delay_ms, of(24.0));
    assert_eq!(second.telemetry.throttled, of(0.2));
    assert_eq!(second.telemetry.protected_throttled, of(0.0));
    assert_eq!(second.heavy_usage, Some(200.0));
}

#[test]
fn a_slice_that_started_anew_counts_from_there() {
    let mut machine = Machine::new();
    machine.look(0);
    machine.stat("h.slice", [0, 0, 0]);
    assert_eq!(machine.look(1).telemetry.throttled, Signal::Pending);
    machine.stat("h.slice", [500_000, 10, 5]);
    let look = machine.look(2);
    assert_eq!(look.telemetry.throttled.value(), Some(0.5));
    assert_eq!(look.heavy_usage, Some(50.0));
}

#[test]
fn a_kernel_without_psi_has_none_and_a_file_that_goes_away_is_a_fault() {
    let mut without = Machine::new();
    fs::remove_dir_all(without.path("proc/pressure")).expect("removed");
    fs::remove_file(without.path("cgroup/p.slice/cpu.pressure")).expect("removed");
    let look = without.look(0);
    assert_eq!(look.telemetry.pressure, Signal::Absent);
    assert_eq!(look.telemetry.protected_pressure, Signal::Absent);

    let mut cut = Machine::new();
    cut.look(0);
    fs::remove_dir_all(cut.path("proc/pressure")).expect("removed");
    let look = cut.look(1);
    assert!(broken(&look.telemetry.pressure).contains("pressure/cpu: "));
    // As with /dev/null over it.
    cut.write("proc/pressure/cpu", "");
    assert!(broken(&cut.look(2).telemetry.pressure).contains("has no line `some avg10=…`"));
}

#[test]
fn a_slice_that_is_gone_is_a_fault() {
    let mut machine = Machine::new();
    machine.look(0);
    fs::remove_dir_all(machine.path("cgroup/h.slice")).expect("removed");
    fs::remove_dir_all(machine.path("cgroup/p.slice")).expect("removed");
    let look = machine.look(1);
    assert!(broken(&look.telemetry.throttled).contains("h.slice/cpu.stat: "));
    assert!(broken(&look.telemetry.protected_pressure).contains("cpu.pressure: "));
    let nowhere = machine.sensor.look(&Groups::default(), SECOND * 2);
    assert!(broken(&nowhere.telemetry.throttled).contains("no control group"));
    assert!(broken(&nowhere.telemetry.protected_pressure).contains("no control group"));
    // A group that never was is none of a kernel without PSI.
    let mut fresh = Machine::new();
    fs::remove_dir_all(fresh.path("cgroup/p.slice")).expect("removed");
    assert!(broken(&fresh.look(0).telemetry.protected_pressure).contains("cpu.pressure"));
}

#[test]
fn a_slice_without_the_cpu_controller_says_so() {
    let mut machine = Machine::new();
    machine.write(
        "cgroup/h.slice/cpu.stat",
        "usage_usec 5\nuser_usec 5\nsystem_usec 0\n",
    );
    let look = machine.look(0);
    assert!(broken(&look.telemetry.throttled).contains("the cpu controller is not enabled there"));
}

#[test]
fn what_is_malformed_is_a_fault() {
    let mut machine = Machine::new();
    machine.write("proc/self/schedstat", "x");
    machine.write("cgroup/h.slice/cpu.stat", "usage_usec -5\n");
    let look = machine.look(0);
    assert!(broken(&look.telemetry.delay_ms).contains("self/schedstat says \"x\""));
    assert!(broken(&look.telemetry.throttled).contains("has no usage_usec"));
    fs::remove_file(machine.path("proc/self/schedstat")).expect("removed");
    assert_eq!(machine.look(1).telemetry.delay_ms, Signal::Absent);
}
