//! The command line of Linux Workload Guard: arguments → plan (pure) → call → render (pure).

mod args;
mod bench;
mod bus;
mod call;
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
mod render;
mod session;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::error::CliError;
use crate::plan::Plan;
use crate::render::Style;

fn main() -> ExitCode {
    let cli = args::Cli::parse_from(args::by_name(std::env::args_os()));
    let plan = plan::plan(cli.command, std::env::var_os("SHELL").as_deref());
    if let Plan::Bench(command) = &plan {
        return bench::main(command);
    }
    let result = match &plan {
        Plan::Offline(what) => offline::run(what).and_then(|text| print(&text)),
        Plan::Call(call) => async_io::block_on(ask(call)),
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

async fn ask(call: &plan::Call) -> Result<(), CliError> {
    let bus = bus::connect_for(call.takes()).await?;
    let guard = bus::guard(&bus).await?;
    if let plan::Call::Status { json, follow: true } = call {
        return follow(&bus, guard, *json).await;
    }
    let answer = call::perform(&guard, call).await?;
    print(&render::answer(&answer, call.json(), &Style::of_stdout()))?;
    if call.stays() {
        return Err(bus::end_of(&bus).await);
    }
    Ok(())
}

/// Prints what is true, and then what happens, until the bus or the reader ends.
async fn follow(
    bus: &zbus::Connection,
    guard: workload_guard_dbus::Guard1Proxy<'static>,
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
