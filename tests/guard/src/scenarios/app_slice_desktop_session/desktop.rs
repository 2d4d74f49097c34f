//! A desktop's apps in miniature: each a unit of app.slice with processes that are busy when they are told to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::harness::load::program_named;
use crate::harness::session::HOME;
use crate::harness::wait::{PATIENCE, until};
use crate::harness::{cgroup, command, home, proc, units};

/// An app: its unit, the slice that it is in, and the script that it runs.
///
/// In the scripts `start NAME PROGRAM` starts an idle process of that program and notes its PID as NAME, and
/// `later NAME PROGRAM` starts a busy one once there are to be builds.
struct App {
    unit: &'static str,
    slice: &'static str,
    /// Whether what the script does is done in a terminal: in a session of its own, with a controlling terminal.
    terminal: bool,
    script: &'static str,
}

const APPS: &[App] = &[
    // gnome-shell starts apps in scopes named after itself, the app and the PID.
    App {
        unit: "app-gnome-org.gnome.Terminal-4711.scope",
        slice: "app.slice",
        terminal: true,
        script: "later build make",
    },
    // VTE puts each tab into a scope beside the terminal's server.
    App {
        unit: "vte-spawn-9d5a6e0c-1f2b-4a57-8a4e-0d3c5b7e9f11.scope",
        slice: "app-org.gnome.Terminal.slice",
        terminal: true,
        script: "later build crunch",
    },
    App {
        unit: "app-org.kde.konsole-5012.scope",
        slice: "app.slice",
        terminal: true,
        script: "later build simulate",
    },
    // Plasma starts apps as services, and so does the bus.
    App {
        unit: "app-org.kde.konsole@6f1c2d3e4b5a.service",
        slice: "app.slice",
        terminal: true,
        script: "later build ninja",
    },
    App {
        unit: "app-gnome-code-6001.scope",
        slice: "app.slice",
        terminal: false,
        script: "start language-server rust-analyzer; later task make",
    },
    App {
        unit: "app-gnome-firefox-6100.scope",
        slice: "app.slice",
        terminal: false,
        script: "start renderer-1 firefox; start renderer-2 firefox",
    },
    App {
        unit: "app-flatpak-org.gimp.GIMP-6200.scope",
        slice: "app.slice",
        terminal: false,
        // Known to be heavy elsewhere: a sandbox's own it is not routed.
        script: "start filter ffmpeg",
    },
    App {
        unit: "snap.firefox.firefox-0b9a8c7d.scope",
        slice: "app.slice",
        terminal: false,
        script: "start renderer firefox",
    },
    // No app's: started by hand.
    App {
        unit: "crunch.scope",
        slice: "app.slice",
        terminal: false,
        script: "exec_as main crunch",
    },
];

/// Words of the scripts.
const PRELUDE: &str = r#"
note() { echo "$2" >"$D/$1.new" && mv "$D/$1.new" "$D/$1"; }
start() { "$HOME/bin/$2" load spin --idle >/dev/null & note "$1" $!; }
later() { read -r _ <"$D/go"; "$HOME/bin/$2" load spin >/dev/null & note "$1" $!; }
exec_as() { note "$1" $$; exec "$HOME/bin/$2" load spin --idle >/dev/null; }
"#;

/// All apps, running. They end when this is dropped.
pub struct Desktop {
    children: Vec<Child>,
    folder: PathBuf,
}

impl Desktop {
    /// Starts them and waits until each is there.
    pub fn start() -> Result<Desktop> {
        for name in ["make", "ninja", "crunch", "simulate", "rust-analyzer", "firefox", "ffmpeg"] {
            program_named(name)?;
        }
        let folder = Path::new(HOME).join("desktop");
        let mut desktop = Desktop {
            children: Vec::new(),
            folder,
        };
        for app in APPS {
            let child = desktop.launch(app)?;
            desktop.children.push(child);
        }
        for app in APPS {
            let names = app.script.split("; ").filter(|line| !line.starts_with("later"));
            let names = names.filter_map(|line| line.split(' ').nth(1)).chain(["script"]);
            for name in names {
                desktop.pid(app.unit, name)?;
            }
        }
        Ok(desktop)
    }

    fn launch(&self, app: &App) -> Result<Child> {
        let own = self.folder.join(app.unit);
        let script = own.join("script.sh");
        let text = format!(
            "D={}\n{PRELUDE}mkfifo \"$D/go\"\nnote script $$\n{}\nwait\n",
            own.display(),
            app.script
        );
        home::write(&script, &text)?;
        let mut run = Command::new("systemd-run");
        run.args(["--user", "--quiet", "--collect"])
            .arg(format!("--unit={}", app.unit))
            .arg(format!("--slice={}", app.slice));
        if app.unit.ends_with(".scope") {
            run.arg("--scope");
        }
        run.arg("--");
        let script = script.display().to_string();
        if app.terminal {
            // script(1) is the terminal: what it runs leads a session with a terminal of its own.
            run.args(["script", "--quiet", "--command", &format!("sh {script}"), "/dev/null"]);
        } else {
            run.args(["sh", &script]);
        }
        run.stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", app.unit))
    }

    /// Lets the terminals and the editor start what they build.
    pub fn start_builds(&self) -> Result<()> {
        for app in APPS.iter().filter(|app| app.script.contains("later ")) {
            // A FIFO: waiting for it starts no process that would come and go.
            fs::write(self.folder.join(app.unit).join("go"), "go\n")?;
        }
        Ok(())
    }

    /// A process by the name that its app's script gave it.
    pub fn pid(&self, unit: &str, name: &str) -> Result<u32> {
        let path = self.folder.join(unit).join(name);
        until(&format!("{name} of {unit} is there"), PATIENCE, || {
            let pid = fs::read_to_string(&path)?.trim().parse()?;
            ensure!(proc::alive(pid), "{pid} has ended");
            Ok(Some(pid))
        })
    }

    /// Every process of every app, and where it is now.
    pub fn places(&self) -> Result<BTreeMap<u32, String>> {
        let mut places = BTreeMap::new();
        for app in APPS {
            let group = units::property(app.unit, "ControlGroup")?;
            for line in cgroup::read(&group, "cgroup.procs")?.lines() {
                places.insert(line.parse()?, group.clone());
            }
        }
        Ok(places)
    }

    /// Every unit but the one that is no app's.
    pub fn units(&self) -> impl Iterator<Item = &'static str> {
        APPS.iter()
            .map(|app| app.unit)
            .filter(|unit| *unit != "crunch.scope")
    }

    /// A process for a message.
    pub fn name(&self, pid: u32) -> String {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} ({})", String::from_utf8_lossy(&line).replace('\0', " "))
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for app in APPS {
            // A terminal would wait for its shell.
            let _ = command::run(&["systemctl", "--user", "kill", "--signal=KILL", app.unit]);
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
