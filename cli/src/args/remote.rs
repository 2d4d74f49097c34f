//! Which machine's guard is asked.

use clap::Args;

/// Where the guard is, when it is not this session's.
#[derive(Debug, Default, Args)]
pub struct RemoteArgs {
    /// Ask the guard of another machine, over ssh
    #[arg(
        long,
        short = 'H',
        global = true,
        value_name = "[USER@]HOST[:PORT]",
        value_parser = host,
        help_heading = "Another session's guard",
        display_order = 900
    )]
    pub host: Option<Target>,
    /// Ask the guard of a user in a local container; `USER@.host` is another user of this machine
    #[arg(
        long,
        short = 'M',
        global = true,
        value_name = "[USER@]CONTAINER",
        value_parser = machine,
        conflicts_with = "host",
        help_heading = "Another session's guard",
        display_order = 901
    )]
    pub machine: Option<Target>,
}

impl RemoteArgs {
    /// The one that was named, if any.
    pub fn target(self) -> Option<Target> {
        self.host.or(self.machine)
    }
}

/// Somebody else's user bus. Nothing in it can be an option, or mean something to a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Another machine.
    Host {
        /// `[USER@]HOST`, as ssh takes it.
        destination: String,
        /// Where its sshd listens.
        port: Option<u16>,
    },
    /// A container that systemd-machined knows.
    Machine {
        /// Whose bus.
        user: String,
        /// Its name.
        name: String,
    },
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Host { destination, port } => {
                f.write_str(destination)?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Target::Machine { user, name } => write!(f, "{user}@{name}"),
        }
    }
}

/// As systemctl takes it; without its `/CONTAINER` at the end.
fn host(text: &str) -> Result<Target, String> {
    let (user, rest) = split_user(text)?;
    let (name, port) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or("there is a [ without a ]")?;
            match rest.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None if rest.is_empty() => (name, None),
                None => return Err(format!("{rest:?} follows the address")),
            }
        }
        // Several colons are an IPv6 address.
        None => match rest.split_once(':') {
            Some((name, port)) if !port.contains(':') => (name, Some(port)),
            _ => (rest, None),
        },
    };
    word("host name", name, "-._:%")?;
    let port = port.map(|port| match port.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("{port:?} is no port")),
    });
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    Ok(Target::Host {
        destination: format!("{user}{name}"),
        port: port.transpose()?,
    })
}

fn machine(text: &str) -> Result<Target, String> {
    let (user, name) = split_user(text)?;
    let name = match name {
        "" if user.is_some() => ".host",
        name => name,
    };
    word("container's name", name, "-._")?;
    Ok(Target::Machine {
        // systemctl's choice.
        user: user.unwrap_or("root").to_owned(),
        name: name.to_owned(),
    })
}

fn split_user(text: &str) -> Result<(Option<&str>, &str), String> {
    match text.rsplit_once('@') {
        Some((user, rest)) => {
            word("user name", user, "-._@")?;
            Ok((Some(user), rest))
        }
        None => Ok((None, text)),
    }
}

/// Letters, digits and `more`, and no option: what ssh makes of a name may end in a shell.
fn word(what: &str, text: &str, more: &str) -> Result<(), String> {
    let bad = |c: char| !(c.is_alphanumeric() || more.contains(c));
    match text.chars().find(|c| bad(*c)) {
        _ if text.is_empty() => Err(format!("the {what} is empty")),
        _ if text.starts_with('-') => Err(format!("a {what} does not begin with a dash")),
        Some(c) => Err(format!("a {what} does not contain {c:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, Option<u16>)> {
        match host(text).ok()? {
            Target::Host { destination, port } => Some((destination, port)),
            Target::Machine { .. } => None,
        }
    }

    #[test]
    fn hosts_are_read_as_systemctl_reads_them() {
        let is = |name: &str, port| Some((name.to_owned(), port));
        assert_eq!(parsed("build"), is("build", None));
        assert_eq!(
            parsed("me@build.example:2222"),
            is("me@build.example", Some(2222))
        );
        assert_eq!(parsed("::1"), is("::1", None));
        assert_eq!(
            parsed("me@[fe80::1%eth0]:22"),
            is("me@fe80::1%eth0", Some(22))
        );
        assert_eq!(parsed("[::1]"), is("::1", None));
    }

    #[test]
    fn a_host_that_is_an_option_or_a_command_is_refused() {
        for text in [
            "",
            "-oProxyCommand=touch${IFS}x",
            "me@-oProxyCommand=x",
            "-l@host",
            "@host",
            "a;b",
            "$(a)@b",
            "a b",
            "a\nb",
            "a/container",
            "host:0",
            "host:x",
            "host:99999",
            "[::1",
            "[::1]x",
        ] {
            assert!(host(text).is_err(), "{text:?}: {:?}", host(text));
        }
        for text in ["", "-x", "a@-x", "a@b c", "a@b=c", "a,b", "a@b/c"] {
            assert!(machine(text).is_err(), "{text:?}: {:?}", machine(text));
        }
    }

    #[test]
    fn a_container_without_a_user_is_roots_and_a_user_without_one_is_of_this_machine() {
        let is = |user: &str, name: &str| {
            Ok(Target::Machine {
                user: user.to_owned(),
                name: name.to_owned(),
            })
        };
        assert_eq!(machine("box"), is("root", "box"));
        assert_eq!(machine("me@"), is("me", ".host"));
        assert_eq!(machine("me@.host"), is("me", ".host"));
    }
}
