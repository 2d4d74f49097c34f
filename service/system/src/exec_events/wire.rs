//! The messages of the process connector. Pure.
//!
//! From the kernel's `include/uapi/linux/{netlink,connector,cn_proc}.h`: a netlink header of 16 bytes, a
//! connector header of 20, then what is said, all in the machine's byte order.

/// Multicast group and index of the connector (`CN_IDX_PROC`).
pub const CN_IDX_PROC: u32 = 1;
/// `CN_VAL_PROC`
const CN_VAL_PROC: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`
const LISTEN: u32 = 1;
/// `PROC_EVENT_NONE`: the answer to a subscription.
const EVENT_NONE: u32 = 0;
/// `PROC_EVENT_EXEC`
const EVENT_EXEC: u32 = 2;
/// `NLMSG_DONE`, the type of all messages of connectors.
const NLMSG_DONE: u16 = 3;

const NETLINK_HEADER: usize = 16;
const HEADERS: usize = NETLINK_HEADER + 20;
/// Where `ack` of the connector header is.
const ACK: usize = NETLINK_HEADER + 12;
/// Where the data of an event begins: after its kind, its CPU and its time.
const DATA: usize = HEADERS + 16;

/// Room for any message of the connector.
pub const MESSAGE: usize = 256;

/// What a subscription asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// All events: the form that kernels before 6.6 know too, and the only one that is answered, since
    /// the kernel's own filter holds back the answer as well.
    All,
    /// Exec events alone (`struct proc_input`, Linux 6.6).
    Exec,
}

/// A subscription; its answer carries `nonce + 1`.
pub fn subscribe(wish: Wish, nonce: u32) -> Vec<u8> {
    let mut payload = LISTEN.to_ne_bytes().to_vec();
    if wish == Wish::Exec {
        payload.extend(EVENT_EXEC.to_ne_bytes());
    }
    let total = HEADERS + payload.len();
    let mut message = Vec::with_capacity(total);
    message.extend((total as u32).to_ne_bytes());
    message.extend(NLMSG_DONE.to_ne_bytes());
    // Flags, sequence and port of the netlink header are not looked at.
    message.extend([0; 10]);
    message.extend(CN_IDX_PROC.to_ne_bytes());
    message.extend(CN_VAL_PROC.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(nonce.to_ne_bytes());
    message.extend((payload.len() as u16).to_ne_bytes());
    message.extend(0u16.to_ne_bytes());
    message.extend(payload);
    message
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The answer to a subscription, of whichever listener.
    Answer {
        /// One more than the nonce of the subscription.
        ack: u32,
        /// Zero, or an error number.
        error: u32,
    },
    /// A process executes another program.
    Exec {
        /// It.
        pid: u32,
    },
    /// Something else.
    Other,
}

/// Reads a message. Anybody with `CAP_NET_ADMIN` could send one; that does no harm, since a PID is all
/// that is taken from it, and everything else is read from `/proc`.
pub fn parse(message: &[u8]) -> Said {
    let word = |at: usize| {
        let bytes = message.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let said = || {
        if (word(NETLINK_HEADER)?, word(NETLINK_HEADER + 4)?) != (CN_IDX_PROC, CN_VAL_PROC) {
            return None;
        }
        match word(HEADERS)? {
            EVENT_NONE => Some(Said::Answer {
                ack: word(ACK)?,
                error: word(DATA)?,
            }),
            // The thread group: `process_pid` is the same after an exec.
            EVENT_EXEC => Some(Said::Exec {
                pid: word(DATA + 4)?,
            }),
            _ => None,
        }
    };
    said().unwrap_or(Said::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel sends it: 76 bytes.
    fn event(what: u32, first: u32, second: u32, ack: u32) -> Vec<u8> {
        let mut message = subscribe(Wish::All, ack);
        message.truncate(HEADERS);
        for word in [what, 0, 0, 0, first, second, 0, 0, 0, 0] {
            message.extend(word.to_ne_bytes());
        }
        message
    }

    #[test]
    fn a_subscription_is_as_the_kernel_takes_it() {
        let all = subscribe(Wish::All, 7);
        assert_eq!(all.len(), 40);
        let exec = subscribe(Wish::Exec, 7);
        assert_eq!(exec.len(), 44);
        assert_eq!(exec[..4], 44u32.to_ne_bytes());
        assert_eq!(exec[32..34], 8u16.to_ne_bytes());
        assert_eq!(exec[36..40], 1u32.to_ne_bytes());
        assert_eq!(exec[40..], 2u32.to_ne_bytes());
    }

    #[test]
    fn events_and_answers_are_told_apart() {
        assert_eq!(event(2, 41, 42, 0).len(), 76);
        assert_eq!(parse(&event(2, 41, 42, 0)), Said::Exec { pid: 42 });
        assert_eq!(parse(&event(0, 1, 0, 8)), Said::Answer { ack: 8, error: 1 });
        assert_eq!(parse(&event(1, 41, 42, 0)), Said::Other);
    }

    #[test]
    fn what_is_cut_or_of_another_connector_says_nothing() {
        let whole = event(2, 41, 42, 0);
        for length in 0..60 {
            assert_eq!(parse(&whole[..length]), Said::Other, "{length}");
        }
        let mut other = whole;
        other[16] = 9;
        assert_eq!(parse(&other), Said::Other);
    }
}
