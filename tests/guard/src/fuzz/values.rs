//! Arguments that nobody sane would give, and some that are nearly right.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Result, bail};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use zvariant::{Array, Dict, Fd, ObjectPath, Signature, StructureBuilder, Value};

use super::type_of;
use crate::harness::dice::Dice;

/// Where values come from.
#[derive(Debug)]
pub struct Source {
    /// Chance.
    pub dice: Dice,
    /// Processes that may be moved about: nobody needs them.
    pub decoys: Vec<u32>,
    /// Numbers of what must not be moved, or is no process.
    pub others: Vec<u32>,
}

/// The deepest nesting that is made up.
const DEPTH: usize = 4;

const STRINGS: &[&str] = &[
    "",
    "Heavy",
    "heavy ",
    "heavy\n[Scope]\nKillMode=none",
    "x\n[Scope]\nKillMode=none\nCPUWeight=3\nSendSIGKILL=no",
    "x\\",
    "\\\n\\\n",
    "%n %% %H %i $HOME ${X} \"' ;#",
    "\u{1}\u{2}\u{1b}[31m\r\n\u{7f}\u{b}",
    "\u{202e}\u{2066}evil\u{2069}\u{200b}\u{feff}",
    "../../../../etc/passwd",
    "/",
    "/user.slice",
    "lwg-heavy-routed-1-2.scope",
    "dbus.service",
    "org.workloadguard.Guard1",
    "State",
    "reason",
    "\u{1f980}\u{1f980}",
];

/// Keys of options, of this version or another.
const KEYS: &[&str] = &[
    "reason", "reason", "lease", "duration", "owner", "expires", "class", "x\ny", "",
];

impl Source {
    /// A value of this type; now and then of quite another.
    pub fn argument(&mut self, signature: &Signature) -> Result<Value<'static>> {
        if self.dice.one_in(12) {
            let wrong = [
                "u", "s", "as", "a{sv}", "(uu)", "v", "ah", "aau", "d", "o", "ay",
            ];
            let wrong = self.dice.pick(&wrong);
            return self.value(&type_of(wrong)?, 0);
        }
        self.value(signature, 0)
    }

    /// A value of this type.
    pub fn value(&mut self, signature: &Signature, depth: usize) -> Result<Value<'static>> {
        Ok(match signature {
            Signature::U8 => Value::U8(self.dice.number() as u8),
            Signature::Bool => Value::Bool(self.dice.one_in(2)),
            Signature::I16 => Value::I16(self.dice.number() as i16),
            Signature::U16 => Value::U16(self.dice.number() as u16),
            Signature::I32 => Value::I32(self.edge() as i32),
            Signature::U32 => Value::U32(self.pid()),
            Signature::I64 => Value::I64(self.edge() as i64),
            Signature::U64 => Value::U64(self.edge()),
            Signature::F64 => {
                Value::F64(
                    self.dice
                        .pick(&[0.0, -1.0, 1e308, f64::NAN, f64::INFINITY, -0.0, 70.0]),
                )
            }
            Signature::Str => Value::from(self.text()),
            Signature::ObjectPath => Value::from(self.path()?),
            Signature::Signature => Value::from(type_of("a{sv}")?),
            Signature::Fd => Value::Fd(Fd::from(self.descriptor()?)),
            Signature::Variant => Value::Value(Box::new(self.variant(depth)?)),
            Signature::Array(child) => {
                let child = child.signature();
                let mut array = Array::new(child);
                for _ in 0..self.length(child, depth) {
                    array.append(self.value(child, depth + 1)?)?;
                }
                Value::Array(array)
            }
            Signature::Dict { key, value } => {
                let (key, value) = (key.signature(), value.signature());
                let mut dict = Dict::new(key, value);
                for _ in 0..self.length(value, depth) {
                    let name = match key {
                        Signature::Str if !self.dice.one_in(4) => Value::from(self.dice.pick(KEYS)),
                        other => self.value(other, depth + 1)?,
                    };
                    dict.append(name, self.value(value, depth + 1)?)?;
                }
                Value::Dict(dict)
            }
            Signature::Structure(fields) => {
                let mut structure = StructureBuilder::new();
                for field in fields.iter() {
                    structure = structure.append_field(self.value(field, depth + 1)?);
                }
                Value::Structure(structure.build()?)
            }
            other => bail!("no values of type {other}"),
        })
    }

    fn variant(&mut self, depth: usize) -> Result<Value<'static>> {
        let kinds: &[&str] = match depth < DEPTH {
            true => &[
                "s", "s", "u", "b", "t", "x", "d", "v", "as", "a{sv}", "h", "o",
            ],
            false => &["s", "u", "b", "t"],
        };
        let kind = self.dice.pick(kinds);
        self.value(&type_of(kind)?, depth + 1)
    }

    fn length(&mut self, child: &Signature, depth: usize) -> usize {
        let scalar = matches!(child, Signature::U32 | Signature::U8 | Signature::U64);
        match self.dice.below(200) {
            // A megabyte and more: the bus lets it through.
            0 if scalar && depth == 0 => 400_000,
            1 | 2 if scalar && depth == 0 => 10_000,
            3..=9 if depth == 0 && *child != Signature::Fd => 257,
            10..=30 => 0,
            31..=60 => 2 + self.dice.below(6),
            _ => 1,
        }
    }

    fn edge(&mut self) -> u64 {
        let edges = [
            0,
            1,
            2,
            60,
            3600,
            i32::MAX as u64,
            u64::from(u32::MAX),
            i64::MAX as u64,
            u64::MAX,
        ];
        match self.dice.one_in(3) {
            true => self.dice.number(),
            false => self.dice.pick(&edges),
        }
    }

    fn pid(&mut self) -> u32 {
        match self.dice.below(8) {
            0 => self.dice.number() as u32,
            1 | 2 => self.dice.pick(&self.others),
            _ => self.dice.pick(&self.decoys),
        }
    }

    fn text(&mut self) -> String {
        match self.dice.below(40) {
            0 => "A\n[Scope]\nKillMode=none\n".repeat(64 * 1024 / 25),
            1 => "\u{e9}".repeat(100 + self.dice.below(300)),
            // The name of a class, so that a call can come through to the move.
            2..=21 => self
                .dice
                .pick(&["heavy", "browser", "protected"])
                .to_owned(),
            _ => self.dice.pick(STRINGS).to_owned(),
        }
    }

    fn path(&mut self) -> Result<ObjectPath<'static>> {
        let paths = [
            "/",
            "/org/workloadguard/Guard1",
            "/org/freedesktop/systemd1",
            "/a_b/c",
        ];
        Ok(ObjectPath::try_from(self.dice.pick(&paths))?)
    }

    fn descriptor(&mut self) -> Result<OwnedFd> {
        if self.dice.one_in(3) {
            return Ok(File::open("/dev/null")?.into());
        }
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let fd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(match fd {
            // The same process by two descriptors, as far as the next one draws it too.
            Some(fd) => fd.as_fd().try_clone_to_owned()?,
            None => std::os::unix::net::UnixStream::pair()?.0.into(),
        })
    }
}
