//! An app that does heavy work of its own: it attaches itself, learns its budget and reads the pressure on it.
//!
//! With `lease` the guard releases what the app attached when the app leaves the bus, however it ends: nothing has to
//! be undone. Try it: `cargo run -p workload-guard-dbus --example app`.

use std::collections::HashMap;
use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use workload_guard_dbus::{Guard1Proxy, Workload1Proxy};
use zvariant::{OwnedValue, Str};

/// Runs until it is killed.
pub fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // What does the heavy work. It goes with the app that started it, into the same workload.
    let worker = Command::new("sleep").arg("3600").spawn()?;
    println!("worker: {}", worker.id());
    zbus::block_on(attached())
}

async fn attached() -> Result<(), Box<dyn Error + Send + Sync>> {
    let bus = zbus::Connection::session().await?;
    let guard = Guard1Proxy::new(&bus).await?;

    let options: HashMap<String, OwnedValue> = HashMap::from([
        ("lease".to_owned(), true.into()),
        ("reason".to_owned(), Str::from("an example").into()),
    ]);
    // PID 0 is the caller, as the bus knows it. A refusal is a `GuardError`, by what it was.
    let path = guard.attach(vec![0], "heavy".to_owned(), options).await?;
    println!("workload: {}", path.as_str());

    for class in guard.classes().await? {
        match (class.name.as_str(), class.quota) {
            ("heavy", 0) => println!("budget: none"),
            ("heavy", percent) => println!("budget: {percent}% of a CPU in {}", class.slice),
            _ => {}
        }
    }

    let workload = Workload1Proxy::builder(&bus).path(path)?.build().await?;
    let group = workload.control_group().await?;
    loop {
        match std::fs::read_to_string(format!("/sys/fs/cgroup{group}/cpu.pressure")) {
            Ok(text) => println!("pressure: {}", text.lines().next().unwrap_or_default()),
            Err(error) => println!("pressure: not told here ({error})"),
        }
        sleep(Duration::from_secs(2));
    }
}
