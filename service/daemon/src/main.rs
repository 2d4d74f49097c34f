//! workload-guardd: the user bus service of Linux Workload Guard.

mod bus;
mod clock;
mod config;
mod disk;
mod guard;
mod history;
mod hold_file;
mod journal;
mod learned;
mod logging;
mod notify;
mod owners;
mod paths;
mod published;
mod record;
mod signals;
mod store;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use workload_guard_dbus::{Guard1, History1, Profile1, Quota1, names};
use zbus::fdo::{DBusProxy, ObjectManager, RequestNameFlags, RequestNameReply};

use bus::{Commands, GuardObject, HistoryObject, ProfileObject, QuotaObject};
use guard::Guard;
use history::History;
use paths::Paths;
use published::Board;
use signals::Signals;

/// sysexits(3): a service that is needed is not there.
const EX_UNAVAILABLE: u8 = 69;

/// The manual's page is made of it as well.
const USAGE: &str = include_str!("usage.txt");

fn main() -> ExitCode {
    let argument = std::env::args_os()
        .nth(1)
        .map(|argument| argument.to_string_lossy().into_owned());
    match argument.as_deref() {
        None => {}
        Some("--version" | "-V") => {
            println!("workload-guardd {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("--help" | "-h") => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!(
                "workload-guardd: it takes no arguments, not {other:?}\n\n{}",
                USAGE.trim_end()
            );
            return ExitCode::from(2);
        }
    }
    logging::start();
    match async_io::block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{error:#}");
            ExitCode::from(EX_UNAVAILABLE)
        }
    }
}

async fn run() -> anyhow::Result<()> {
    let signals = Signals::block()?;
    let paths = Paths::from_environment()?;
    let connection = guard_system::bus::connect()
        .await
        .context("the user bus cannot be reached")?;
    refuse_second(&connection).await?;
    let board = Board::default();
    let (commands, queue) = Commands::new();
    // All objects, and what they show, before the name: the call that activated us comes before the
    // reply to RequestName.
    let server = connection.object_server();
    server.at(names::WORKLOADS_PATH, ObjectManager).await?;
    let history =
        History::start(paths.state.clone()).context("the history's thread does not start")?;
    let guard = Guard::new(
        connection.clone(),
        paths,
        board.clone(),
        commands.clone(),
        history.clone(),
    )
    .await?;
    let quota = QuotaObject {
        connection: connection.clone(),
        board: board.clone(),
        commands: commands.clone(),
    };
    let profile = ProfileObject::new(connection.clone());
    let past = HistoryObject {
        board: board.clone(),
        history,
    };
    let object = GuardObject {
        connection: connection.clone(),
        mover: guard.mover(),
        board,
        commands,
    };
    server
        .at(names::GUARD_PATH, Guard1(Arc::new(object)))
        .await?;
    server
        .at(names::GUARD_PATH, Quota1(Arc::new(quota)))
        .await?;
    server
        .at(names::GUARD_PATH, History1(Arc::new(past)))
        .await?;
    server
        .at(names::GUARD_PATH, Profile1(Arc::new(profile)))
        .await?;
    let reply = connection
        .request_name_with_flags(names::GUARD_NAME, RequestNameFlags::DoNotQueue.into())
        .await;
    if !matches!(reply, Ok(RequestNameReply::PrimaryOwner)) {
        refuse_second(&connection).await?;
        bail!(
            "the bus does not give us the name {}: {reply:?}",
            names::GUARD_NAME
        );
    }
    guard.run(queue, signals).await
}

/// Two routers would fight over the same processes: names the first and refuses.
async fn refuse_second(connection: &zbus::Connection) -> anyhow::Result<()> {
    let bus = DBusProxy::new(connection).await?;
    let name = zbus::names::BusName::try_from(names::GUARD_NAME)?;
    if let Ok(owner) = bus.get_name_owner(name.clone()).await {
        let pid = bus.get_connection_unix_process_id(name).await;
        bail!(
            "another guard runs already: process {} owns {} as {owner}; stop it first (systemctl --user stop workload-guard)",
            pid.map_or_else(|_| "?".to_owned(), |pid| pid.to_string()),
            names::GUARD_NAME
        );
    }
    Ok(())
}
