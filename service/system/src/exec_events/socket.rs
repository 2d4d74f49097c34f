//! The netlink socket of the process connector.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};

use super::Unavailable;
use super::wire::{self, CN_IDX_PROC, MESSAGE, Said, Wish};

/// Subscriptions that are tried: of a small buffer the answer can be among what is lost.
const ATTEMPTS: u32 = 3;
/// Messages that are looked at for the answer. It is there when the subscription was sent (the kernel
/// answers within the call), but others' events can be before it.
const BEFORE_THE_ANSWER: u32 = 4096;

/// A subscribed socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What [`Socket::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A message.
    Said(Said),
    /// Messages were dropped since the last read; [`Socket::drops`] has the count.
    Dropped,
    /// Nothing is left.
    Empty,
}

impl Socket {
    /// Subscribes to exec events, and believes it only when the kernel has answered.
    pub fn open(rcvbuf: Option<usize>) -> Result<Socket, Unavailable> {
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::CONNECTOR),
        )
        .map_err(Unavailable::socket)?;
        if let Some(bytes) = rcvbuf {
            sockopt::set_socket_recv_buffer_size(&fd, bytes).map_err(Unavailable::other)?;
        }
        bind(&fd, &SocketAddrNetlink::new(0, CN_IDX_PROC)).map_err(Unavailable::bind)?;
        let socket = Socket { fd };
        for attempt in 0..ATTEMPTS {
            if socket.is_answered(std::process::id().wrapping_add(attempt))? {
                socket.send(Wish::Exec, 0)?;
                return Ok(socket);
            }
        }
        Err(Unavailable::no_answer())
    }

    /// Subscribes to everything, which is answered.
    fn is_answered(&self, nonce: u32) -> Result<bool, Unavailable> {
        self.send(Wish::All, nonce)?;
        for _ in 0..BEFORE_THE_ANSWER {
            match self.read() {
                Ok(Read::Said(Said::Answer { ack, error })) if ack == nonce.wrapping_add(1) => {
                    return match i32::try_from(error) {
                        Ok(0) => Ok(true),
                        Ok(error) => Err(Unavailable::refused(error)),
                        Err(_) => Ok(false),
                    };
                }
                Ok(Read::Empty) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(Unavailable::io(&error)),
            }
        }
        Ok(false)
    }

    fn send(&self, wish: Wish, nonce: u32) -> Result<(), Unavailable> {
        send(&self.fd, &wire::subscribe(wish, nonce), SendFlags::empty())
            .map(drop)
            .map_err(Unavailable::send)
    }

    /// The next message, without waiting.
    pub fn read(&self) -> io::Result<Read> {
        let mut buffer = [0; MESSAGE];
        loop {
            match recv(&self.fd, &mut buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Read::Said(wire::parse(&buffer[..length]))),
                Err(Errno::AGAIN) => return Ok(Read::Empty),
                // netlink(7): the kernel says once that it had to drop something.
                Err(Errno::NOBUFS) => return Ok(Read::Dropped),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How many messages were dropped since the socket was made, since its buffer was full
    /// (`SK_MEMINFO_DROPS` of `SO_MEMINFO`, Linux 4.12). Exact, where the sequence numbers of the
    /// messages are not: the kernel counts in them what the filter held back, too.
    pub fn drops(&self) -> io::Result<u32> {
        /// Numbers that the kernel fills in (`SK_MEMINFO_VARS` of `linux/sock_diag.h`); drops are last.
        const VARS: usize = 9;
        let mut info = [0u32; VARS];
        let mut length = size_of_val(&info) as libc::socklen_t;
        // SAFETY: the descriptor is open, `info` is writable for `length` bytes, and the kernel writes
        // no more than that; any bytes are valid for integers.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                info.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if done == 0 {
            Ok(info[VARS - 1])
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
