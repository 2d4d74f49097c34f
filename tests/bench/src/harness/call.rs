//! Calls on the system bus as any user, with the error's name as the answer.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use workload_guard_dbus::names::{BENCH_NAME, BENCH_PATH};
use zbus::block_on;
use zbus::message::Flags;
use zvariant::Value;

/// The interface of the bench service.
pub const INTERFACE: &str = BENCH_NAME;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The error's name; none when it was carried out.
    pub error: Option<String>,
    /// The error's text, or the reply's body.
    pub text: String,
}

/// What is called. `Apply` and `SetNextBoot` take the profile, all others take nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The interface.
    pub interface: String,
    /// The member.
    pub member: String,
    /// The profile.
    pub profile: Option<String>,
    /// Whether a person may be asked.
    pub interactive: bool,
}

impl Order {
    /// `Restore`, without asking anybody.
    pub fn restore() -> Order {
        Order::of(INTERFACE, "Restore")
    }

    /// `Apply`, without asking anybody.
    pub fn apply(profile: &str) -> Order {
        Order {
            profile: Some(profile.into()),
            ..Order::of(INTERFACE, "Apply")
        }
    }

    /// `SetNextBoot`, without asking anybody.
    pub fn next_boot(profile: &str) -> Order {
        Order {
            profile: Some(profile.into()),
            ..Order::of(INTERFACE, "SetNextBoot")
        }
    }

    /// A member without arguments.
    pub fn of(interface: &str, member: &str) -> Order {
        Order {
            interface: interface.into(),
            member: member.into(),
            profile: None,
            interactive: false,
        }
    }

    /// A person may be asked.
    pub fn interactive(self) -> Order {
        Order {
            interactive: true,
            ..self
        }
    }
}

/// A process of a user that waits for the word to call.
pub struct Caller {
    child: Child,
    says: BufReader<ChildStdout>,
}

/// What it says when it is that user's and waits.
const READY: &str = "ready\n";

impl Caller {
    /// Starts it as `uid`, with that user's groups.
    pub fn new(uid: u32, order: &Order) -> Result<Caller> {
        let id = uid.to_string();
        let mut child = Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--init-groups"])
            .arg(std::env::current_exe()?)
            .args(["call", &serde_json::to_string(order)?])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut says = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut line = String::new();
        says.read_line(&mut line)?;
        ensure!(line == READY, "the caller said {line:?}");
        Ok(Caller { child, says })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives the word.
    pub fn go(&mut self) -> Result<()> {
        let mut words = self.child.stdin.take().context("told already")?;
        Ok(words.write_all(b"go\n")?)
    }

    /// Waits for what came of it.
    pub fn answer(mut self) -> Result<Answer> {
        if self.child.stdin.is_some() {
            self.go()?;
        }
        let mut answer = String::new();
        self.says.read_to_string(&mut answer)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the caller ended with {status}");
        Ok(serde_json::from_str(&answer)?)
    }
}

/// Has `uid` call, and answers what came of it.
pub fn call(uid: u32, order: &Order) -> Result<Answer> {
    Caller::new(uid, order)?.answer()
}

/// Fails unless `uid` is answered with the error `name`; answers the text.
pub fn refused(uid: u32, order: &Order, name: &str) -> Result<String> {
    let answer = call(uid, order)?;
    ensure!(
        answer.error.as_deref() == Some(name),
        "{} of uid {uid} was answered with {answer:?}, not with {name}",
        order.member
    );
    Ok(answer.text)
}

/// Fails unless it is carried out for `uid`; answers the reply's body.
pub fn done(uid: u32, order: &Order) -> Result<String> {
    let answer = call(uid, order)?;
    ensure!(
        answer.error.is_none(),
        "{} of uid {uid} was answered with {answer:?}",
        order.member
    );
    Ok(answer.text)
}

/// `bench-scenarios call ORDER`: waits for a line, calls, prints the answer.
pub fn main(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order)?;
    print!("{READY}");
    std::io::stdout().flush()?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    println!("{}", serde_json::to_string(&block_on(carry_out(&order))?)?);
    Ok(())
}

async fn carry_out(order: &Order) -> Result<Answer> {
    let bus = zbus::Connection::system().await?;
    let message = zbus::Message::method_call(BENCH_PATH, order.member.as_str())?
        .destination(BENCH_NAME)?
        .interface(order.interface.as_str())?;
    let message = if order.interactive {
        message.with_flags(Flags::AllowInteractiveAuth)?
    } else {
        message
    };
    let message = match &order.profile {
        Some(profile) if order.member == "SetNextBoot" => message.build(&(profile,))?,
        Some(profile) => message.build(&(profile, HashMap::<&str, Value<'_>>::new()))?,
        None => message.build(&())?,
    };
    Ok(answer(&bus, &message).await?)
}

async fn answer(bus: &zbus::Connection, message: &zbus::Message) -> zbus::Result<Answer> {
    use futures::StreamExt;
    let mut replies = zbus::MessageStream::from(bus);
    bus.send(message).await?;
    let serial = message.primary_header().serial_num();
    while let Some(reply) = replies.next().await {
        let reply = reply?;
        let header = reply.header();
        if header.reply_serial() != Some(serial) {
            continue;
        }
        let error = header.error_name().map(ToString::to_string);
        let text = match error {
            Some(_) => reply.body().deserialize::<String>().unwrap_or_default(),
            None => reply
                .body()
                .deserialize::<zvariant::Structure<'_>>()
                .map(|body| body.to_string())
                .unwrap_or_default(),
        };
        return Ok(Answer { error, text });
    }
    Err(zbus::Error::InvalidReply)
}
