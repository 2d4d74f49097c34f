//! A client that calls everything with anything, and looks at how it is answered.

mod members;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use workload_guard_dbus::names::GUARD_NAME;
use zbus::connection::Builder;
use zbus::{Connection, block_on};
use zvariant::{Signature, StructureBuilder, Value};

use crate::harness::dice::Dice;
use members::{Kind, Member};
use values::Source;

/// Who is called.
const SERVICE: &str = GUARD_NAME;
/// Between two looks at what there is to call: workloads come and go.
const LOOK_EVERY: u64 = 100;
/// An answer must come within this.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Of its chance.
    pub seed: u64,
    /// How many calls.
    pub calls: u64,
    /// Processes that may be moved about.
    pub decoys: Vec<u32>,
    /// Numbers of others.
    pub others: Vec<u32>,
}

/// What a client tells.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Calls that were answered.
    pub answered: u64,
    /// How often each member was called.
    pub members: BTreeMap<String, u64>,
    /// How often each answer came: `reply`, or the error's name.
    pub answers: BTreeMap<String, u64>,
    /// Answers that no caller can make sense of, with the call.
    pub strange: Vec<String>,
}

/// Error names of the bus itself that say what is wrong with a call.
const KNOWN: &[&str] = &[
    "org.freedesktop.DBus.Error.UnknownMethod",
    "org.freedesktop.DBus.Error.UnknownObject",
    "org.freedesktop.DBus.Error.UnknownInterface",
    "org.freedesktop.DBus.Error.UnknownProperty",
    "org.freedesktop.DBus.Error.InvalidArgs",
    "org.freedesktop.DBus.Error.PropertyReadOnly",
];

/// A type by its code.
fn type_of(code: &str) -> Result<Signature> {
    Signature::try_from(code).map_err(|error| anyhow::anyhow!("{code:?} is no type: {error}"))
}

/// What zbus answers to arguments that a method does not take, before our code sees the call.
const MISFIT: &str = "org.freedesktop.zbus.Error";

/// Whether the arguments are of the types that a member of ours declares. What the members of
/// `org.freedesktop.DBus` take is in part a matter of the text: a name must be one.
fn fits(member: &Member, arguments: &[Value<'_>]) -> bool {
    match &member.kind {
        Kind::Method(signatures) => {
            is_ours(member)
                && signatures.len() == arguments.len()
                && signatures
                    .iter()
                    .zip(arguments)
                    .all(|(signature, argument)| argument.value_signature() == signature)
        }
        Kind::Property(_) => is_ours(member),
    }
}

fn is_ours(member: &Member) -> bool {
    member.interface.starts_with("org.workloadguard.")
}

/// Carries out a task and prints the report as a line of JSON.
pub fn client(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task)?;
    let bus = block_on(async { Builder::session()?.method_timeout(PATIENCE).build().await })?;
    let mut source = Source {
        dice: Dice::of(task.seed),
        decoys: task.decoys,
        others: task.others,
    };
    source.others.extend([0, 1, u32::MAX, std::process::id()]);
    let mut report = Report::default();
    let mut known = Vec::new();
    for call in 0..task.calls {
        if call % LOOK_EVERY == 0 {
            known = members::all(&bus).context("introspection")?;
        }
        // The members that every object has are called, too, but not most of the time.
        let ours: Vec<&Member> = known.iter().filter(|member| is_ours(member)).collect();
        let calls: Vec<&Member> = ours
            .iter()
            .filter(|member| matches!(member.kind, Kind::Method(_)))
            .copied()
            .collect();
        let member = match source.dice.below(10) {
            0 => known[source.dice.below(known.len())].clone(),
            1 | 2 => source.dice.pick(&ours).clone(),
            _ => source.dice.pick(&calls).clone(),
        };
        one(&bus, &member, &mut source, &mut report)?;
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn one(bus: &Connection, member: &Member, source: &mut Source, report: &mut Report) -> Result<()> {
    let (interface, name, arguments) = match &member.kind {
        Kind::Method(signatures) => {
            let mut arguments = signatures
                .iter()
                .map(|signature| source.argument(signature))
                .collect::<Result<Vec<_>>>()?;
            if source.dice.one_in(30) {
                arguments.pop();
            }
            if source.dice.one_in(30) {
                arguments.push(source.value(&Signature::Variant, 0)?);
            }
            (member.interface.as_str(), member.name.as_str(), arguments)
        }
        Kind::Property(signature) => {
            let mut arguments = vec![
                Value::from(member.interface.clone()),
                Value::from(member.name.clone()),
            ];
            let set = source.dice.one_in(2);
            if set {
                arguments.push(Value::Value(Box::new(source.argument(signature)?)));
            }
            let verb = if set { "Set" } else { "Get" };
            ("org.freedesktop.DBus.Properties", verb, arguments)
        }
    };
    let what = format!("{}.{}", member.interface, member.name);
    let shown = format!("{name} {what} {} {arguments:?}", member.path);
    let shown: String = shown.chars().take(400).collect();
    let fits = fits(member, &arguments);
    let path = member.path.as_str();
    let answer = if arguments.is_empty() {
        block_on(bus.call_method(Some(SERVICE), path, Some(interface), name, &()))
    } else {
        let mut body = StructureBuilder::new();
        for argument in arguments {
            body = body.append_field(argument);
        }
        let body = body.build()?;
        block_on(bus.call_method(Some(SERVICE), path, Some(interface), name, &body))
    };
    *report.members.entry(what).or_default() += 1;
    let (answer, sane) = match answer {
        Ok(_) => ("reply".to_owned(), true),
        Err(zbus::Error::MethodError(name, text, _)) => {
            let ours = name.as_str().starts_with("org.workloadguard.Error.");
            let said = text.is_some_and(|text| !text.is_empty());
            (
                name.to_string(),
                said && (ours || KNOWN.contains(&name.as_str()) || name == MISFIT && !fits),
            )
        }
        Err(error) => (format!("no answer: {error}"), false),
    };
    report.answered += 1;
    if !sane && report.strange.len() < 20 {
        report.strange.push(format!("{answer} to {shown}"));
    }
    *report.answers.entry(answer).or_default() += 1;
    Ok(())
}
