//! Kernel command lines: what each profile adds, and what of a line is ours.

#[cfg(test)]
mod tests;
mod tokens;

use crate::machine::Machine;
use crate::profile::Profile;

/// The parameter that names the profile of a boot.
pub const MARKER: &str = "bench_profile";

/// Bytes that the kernel keeps of its command line, the closing NUL included (`COMMAND_LINE_SIZE` on
/// x86 and arm64; what is longer is cut off in silence).
pub const LIMIT: usize = 2048;

/// Parameters that a profile sets or rules out: of a base line, they are taken away.
const OURS: [&str; 10] = [
    MARKER,
    "nosmt",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "systemd.cpu_affinity",
    "systemd.unit",
    "systemd.swap",
];

/// Ours only on a line that has the marker: the machine's owner may mask units too.
const MASK: &str = "systemd.mask";

/// A command line that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    /// The kernel would cut it off.
    #[error(
        "the kernel's command line for {profile} would have {length} bytes, and the kernel keeps {}: name fewer units in `units.masked`",
        LIMIT - 1
    )]
    TooLong {
        /// Whose line.
        profile: Profile,
        /// Its length.
        length: usize,
    },
    /// A character that would end the line or the entry.
    #[error("the command line holds {0:?}, which no boot entry can")]
    Control(char),
    /// What comes behind it would belong to it.
    #[error(
        "the command line has a quote that is not closed, which would swallow what a profile adds"
    )]
    OpenQuote,
    /// Limine would put a macro's text there.
    #[error("it holds `${{`, which Limine takes for a macro: take it out")]
    Macro,
}

/// What `profile` adds to the machine's command line.
pub fn parameters(machine: &Machine, profile: Profile) -> Vec<String> {
    let mut parameters = vec![format!("{MARKER}={profile}")];
    if profile.isolates() {
        let (bench, housekeeping) = (&machine.cpus.bench, &machine.cpus.housekeeping);
        if !machine.switches(profile).smt {
            parameters.push("nosmt".to_owned());
        }
        // `domain` ends load balancing: right for one pinned thread, ruin for a pool of them.
        let flags = match profile {
            Profile::SingleCore => "domain,managed_irq",
            _ => "managed_irq",
        };
        parameters.extend([
            format!("isolcpus={flags},{bench}"),
            format!("nohz_full={bench}"),
            format!("rcu_nocbs={bench}"),
            "rcu_nocb_poll".to_owned(),
            format!("irqaffinity={housekeeping}"),
            format!("systemd.cpu_affinity={housekeeping}"),
        ]);
    }
    parameters.extend([
        "systemd.unit=multi-user.target".to_owned(),
        "systemd.swap=0".to_owned(),
    ]);
    parameters.extend(
        machine
            .masked_units
            .iter()
            .map(|unit| format!("{MASK}={unit}")),
    );
    parameters
}

/// The machine's own command line with that of `profile` in it. `base` may be of a boot into a profile:
/// what is ours is taken off first.
///
/// # Errors
///
/// The line would be too long, or holds what no boot entry can.
pub fn merged(base: &str, machine: &Machine, profile: Profile) -> Result<String, CommandLineError> {
    merged_with(base, machine, profile, |parameter| parameter)
}

/// As [`merged`], where each parameter is written as `add` has it.
///
/// # Errors
///
/// As [`merged`].
pub fn merged_with(
    base: &str,
    machine: &Machine,
    profile: Profile,
    add: impl Fn(String) -> String,
) -> Result<String, CommandLineError> {
    if let Some(c) = base
        .trim_end()
        .chars()
        .find(|c| c.is_control() && *c != '\t')
    {
        return Err(CommandLineError::Control(c));
    }
    if !base.matches('"').count().is_multiple_of(2) {
        return Err(CommandLineError::OpenQuote);
    }
    let own = stripped(base);
    // What follows `--` is for init, not for the kernel.
    let end = own
        .iter()
        .position(|token| *token == "--")
        .unwrap_or(own.len());
    let mut all: Vec<String> = own[..end].iter().map(|token| (*token).to_owned()).collect();
    all.extend(parameters(machine, profile).into_iter().map(add));
    all.extend(own[end..].iter().map(|token| (*token).to_owned()));
    let line = all.join(" ");
    if line.len() >= LIMIT {
        return Err(CommandLineError::TooLong {
            profile,
            length: line.len(),
        });
    }
    Ok(line)
}

/// The tokens of `base` that are the machine's own.
pub fn stripped(base: &str) -> Vec<&str> {
    let marked = value(base, MARKER).is_some();
    let ours = |token: &str| {
        let name = tokens::name(token);
        OURS.contains(&name.as_str()) || (marked && name == MASK)
    };
    let mut init = false;
    tokens::split(base)
        .into_iter()
        .filter(|token| {
            init |= *token == "--";
            init || !ours(token)
        })
        .collect()
}

/// The value of the last parameter of that name, as the kernel takes it.
fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    tokens::split(line)
        .into_iter()
        .take_while(|token| *token != "--")
        .filter(|token| tokens::name(token) == name)
        .last()
        .map(|token| token.split_once('=').map_or("", |(_, value)| value))
}

/// The profile that a command line names; `None` on a normal boot.
///
/// # Errors
///
/// The marker's value, where it is no profile's name.
pub fn booted(line: &str) -> Result<Option<Profile>, crate::profile::UnknownProfile> {
    value(line, MARKER).map(str::parse).transpose()
}

/// How a boot's command line differs from what `profile` should have, a sentence each.
pub fn differences(line: &str, machine: &Machine, profile: Profile) -> Vec<String> {
    let present: Vec<&str> = tokens::split(line)
        .into_iter()
        .take_while(|token| *token != "--")
        .collect();
    let wanted = parameters(machine, profile);
    let missing = wanted
        .iter()
        .filter(|wanted| !present.contains(&wanted.as_str()))
        .map(|wanted| format!("the kernel's command line lacks {wanted}"));
    let extra = present
        .iter()
        .filter(|token| OURS.contains(&tokens::name(token).as_str()))
        .filter(|token| !wanted.iter().any(|wanted| wanted == *token))
        .map(|token| format!("the kernel's command line has {token}, which {profile} rules out"));
    missing.chain(extra).collect()
}
