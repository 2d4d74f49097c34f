use crate::machine::{MachineFile, import, render};

/// Values as the older tools' page gives them.
const OLD: &str = r#"
# machine.conf
BENCH_CPUS="8-15"          # one complex, primary threads
HOUSEKEEPING_CPUS='0-7'
export SINGLE_CORE_CPU=8; readonly PARKED_CPUS=1-7
EXPECTED_ONLINE_CPUS="0-15"
KERNEL_ENTRY_MATCH="linux-cachyos"
MASKED_UNITS=(
  plasmalogin.service "ly@tty2.service" # the desktop
  bpftune.service
)
NOISY_UNITS="scx_loader.service \
  ananicy-cpp.service"
CANARY_SPEEDUP_DIVISOR=2
LIMINE_CONF=/boot/limine.conf
"#;

#[test]
fn the_older_tools_file_becomes_a_machine_file() {
    let imported = import("machine.conf", OLD).expect("it is correct");
    let file = MachineFile::parse("machine.toml", &imported.text).expect("it is correct");
    let machine = file.machine;
    assert_eq!(machine.cpus.bench.to_string(), "8-15");
    assert_eq!(machine.cpus.parked.to_string(), "1-7");
    assert_eq!(machine.kernel_entry_match, "linux-cachyos");
    assert_eq!(
        machine.masked_units,
        ["plasmalogin.service", "ly@tty2.service", "bpftune.service"]
    );
    assert_eq!(
        machine.noisy_units,
        ["scx_loader.service", "ananicy-cpp.service"]
    );
    assert_eq!(
        imported.notes,
        ["machine.conf:15: LIMINE_CONF has no counterpart and is left out"]
    );
}

#[test]
fn nothing_of_it_is_run() {
    for (line, reason) in [
        (
            "BENCH_CPUS=$(nproc)",
            "a shell would compute a value at '$'",
        ),
        (
            "BENCH_CPUS=\"${X:-1}\"",
            "a shell would compute a value at '$'",
        ),
        ("BENCH_CPUS=`id`", "a shell would compute a value at '`'"),
        ("source /etc/other.conf", "this is no assignment KEY=value"),
        (
            "BENCH_CPUS=8-15 rm -rf /",
            "this is no assignment KEY=value",
        ),
        ("BENCH_CPUS=\"8-15", "a quote \" that does not end"),
        ("MASKED_UNITS=( a.service", "an array that does not end"),
        (
            "SINGLE_CORE_CPU=eight",
            "`SINGLE_CORE_CPU`: it must be the number of a CPU, not \"eight\"",
        ),
    ] {
        let error = import("machine.conf", line).expect_err(line).to_string();
        assert!(error.starts_with("machine.conf:1: "), "{error}");
        assert!(error.contains(reason), "{line}: {error}");
    }
}

#[test]
fn what_disagrees_is_named_by_its_old_name() {
    let text = OLD.replace("SINGLE_CORE_CPU=8", "SINGLE_CORE_CPU=3");
    let error = import("machine.conf", &text).expect_err("it disagrees");
    assert!(
        error
            .to_string()
            .starts_with("machine.conf: `SINGLE_CORE_CPU`: CPU 3 is not in"),
        "{error}"
    );
    let error = import("machine.conf", &OLD.replace("bpftune.service", "bpftune"))
        .expect_err("no unit's name");
    assert!(error.to_string().contains("`MASKED_UNITS`"), "{error}");
}

#[test]
fn a_rendered_file_is_read_back() {
    let shipped = MachineFile::parse("machine.toml", super::SHIPPED).expect("it is correct");
    let reasons = [("cpus.bench".to_owned(), vec!["Two\nlines.".to_owned()])].into();
    let text = render(&shipped.machine, &reasons);
    assert!(
        text.contains("[cpus]\n# Two\n# lines.\nbench = \"8-15\"\n"),
        "{text}"
    );
    let again = MachineFile::parse("machine.toml", &text).expect("it is correct");
    assert_eq!(again.machine, shipped.machine);
}
