//! The command line of Linux Workload Guard: arguments → plan (pure) → call → render (pure).

mod args;
mod bench;
mod bus;
mod call;
mod complete;
mod error;
mod exec;
mod fallback;
mod follow;
mod insight;
mod manual;
mod offline;
mod place;
mod plan;
mod quota;
mod remote;
mod render;
mod session;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use workload_guard_dbus::Guard1Proxy;

use crate::args::Target;
use crate::error::CliError;
use crate::follow::News;
use crate::plan::{Call, Plan};
use crate::render::Style;
use crate::render::format::Format;

fn main() -> ExitCode {
    complete::answer();
    let cli = args::Cli::parse_from(args::by_name(std::env::args_os()));
    let target = cli.remote.target();
    let plan = plan::plan(cli.command, std::env::var_os("SHELL").as_deref());
    if let Some(target) = &target
        && !matches!(plan, Plan::Call(_))
    {
        args::works_here_alone(target).exit();
    }
    if let Plan::Bench(command) = &plan {
        return bench::main(command);
    }
    let result = match &plan {
        Plan::Offline(what) => offline::run(what).and_then(|text| print(&text)),
        Plan::Call(call) => async_io::block_on(ask(call, target.as_ref())),
        Plan::Bench(_) => unreachable!("done above"),
        Plan::Place(placement) => place::place(placement).map(|never| match never {}),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload-guard: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Asks the guard of this session, or that of `target`.
async fn ask(call: &Call, target: Option<&Target>) -> Result<(), CliError> {
    let Some(target) = target else {
        let bus = bus::connect_for(call.takes()).await?;
        return bus::driven(&bus, ask_over(&bus, call, None)).await;
    };
    let (bus, _bridge) = remote::connect(target, call.takes()).await?;
    let asked = bus::driven(&bus, ask_over(&bus, call, Some(target))).await;
    asked.map_err(|error| error.of(target))
}

async fn ask_over(
    bus: &zbus::Connection,
    call: &Call,
    target: Option<&Target>,
) -> Result<(), CliError> {
    let guard = bus::guard(bus, target).await?;
    let style = Style::of_stdout();
    match call {
        Call::Status {
            follow: true,
            format: Some(format),
            ..
        } => return follow_line(bus, guard, format).await,
        Call::Status {
            follow: true, json, ..
        } => return follow(bus, guard, *json).await,
        Call::Status {
            format: Some(format),
            ..
        } => return print(&line(format, &call::status(&guard).await?)?),
        _ => {}
    }
    let answer = call::perform(&guard, call).await?;
    print(&render::answer(&answer, call.json(), &style))?;
    if call.stays() {
        return Err(bus::end_of(bus).await);
    }
    Ok(())
}

/// Prints what is true, and then what happens, until the bus or the reader ends.
async fn follow(
    bus: &zbus::Connection,
    guard: Guard1Proxy<'static>,
    json: bool,
) -> Result<(), CliError> {
    let (mut follower, status) = follow::Follower::start(bus, guard).await?;
    let mut text = render::first(&status, json, &Style::of_stdout());
    while print_to_reader(&text)? {
        let style = Style::of_stdout();
        let news = follower.next().await?;
        text = news
            .iter()
            .map(|one| render::news(one, json, &style))
            .collect();
    }
    Ok(())
}

/// Prints a line, and again whenever something happened that changes it.
async fn follow_line(
    bus: &zbus::Connection,
    guard: Guard1Proxy<'static>,
    format: &Format,
) -> Result<(), CliError> {
    let (mut follower, mut status) = follow::Follower::start(bus, guard.clone()).await?;
    let mut shown = String::new();
    loop {
        let now = line(format, &status)?;
        if now != shown && !print_to_reader(&now)? {
            return Ok(());
        }
        shown = now;
        match follower.next().await?.pop() {
            // Asking would start another one.
            Some(News::Left) => status = status.stopped(),
            Some(News::Back(new)) => status = *new,
            _ => {
                if let Ok(new) = call::status(&guard).await {
                    status = new;
                }
            }
        }
    }
}

fn line(format: &Format, status: &call::Status) -> Result<String, CliError> {
    format.line(status).map_err(CliError::Failed)
}

/// Prints to stdout. A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> Result<(), CliError> {
    print_to_reader(text).map(drop)
}

/// Prints to stdout; false when the reader has seen enough.
fn print_to_reader(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::Failed(format!("cannot write to stdout: {error}"))),
    }
}
