//! What happened, over a real bus: the pages and tables of a whole day.

use crate::support::{Bus, FakeGuard, run};

#[test]
fn a_day_is_shown() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    let (status, shown, err) = run(bus.cli().arg("history"));
    assert_eq!(status, 0, "{err}");
    for part in [
        "24 h        276",
        "heavy CPU %",
        "cargo build --release <&>",
        "83.3 s  heavy          1  cargo build",
        "▁",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn the_report_is_one_file() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    let file = bus.dir().join("report.html");
    let (status, out, err) = run(bus.cli().arg("report").arg("--html").arg(&file));
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("report.html"), "{out}");
    let page = std::fs::read_to_string(&file).expect("the page");
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("cargo build --release &lt;&amp;&gt;") && page.contains("83.3 s"));
    // To look at: REPORT_COPY=/tmp/report.html cargo test -p workload-guard --test bus
    if let Some(copy) = std::env::var_os("REPORT_COPY") {
        std::fs::copy(&file, copy).expect("copied");
    }
    let (status, _, err) = run(bus
        .cli()
        .args(["report", "--html", "/nonexistent/report.html"]));
    assert_eq!(status, 1);
    assert!(
        err.contains("/nonexistent/report.html cannot be written"),
        "{err}"
    );
}

#[test]
fn metrics_go_to_stdout_or_replace_a_file() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    assert_eq!(run(bus.cli().arg("metrics")).1, "# EOF\n");
    let file = bus.dir().join("guard.prom");
    std::fs::write(&file, "old").expect("written");
    let (status, out, _) = run(bus.cli().arg("metrics").arg("--output").arg(&file));
    assert_eq!((status, out.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "# EOF\n");
}

#[test]
fn the_hour_is_diagnosed_in_words_and_in_json() {
    let Some(bus) = Bus::start() else { return };
    let _guard = FakeGuard::on(&bus, None);
    let (status, out, _) = run(bus.cli().arg("diagnose"));
    assert_eq!(status, 0);
    assert!(
        out.contains("outside-reach") && out.contains("docker run --cpus="),
        "{out}"
    );
    let (_, out, _) = run(bus.cli().args(["diagnose", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        value["findings"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty()),
        "{out}"
    );
}
