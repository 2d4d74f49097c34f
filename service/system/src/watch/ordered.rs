//! Two streams of one connection, read in the order of arrival.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use zbus::{Message, MessageStream};

/// Messages of both streams, the earlier first. It ends with the connection.
#[derive(Debug)]
pub(super) struct Ordered {
    streams: [MessageStream; 2],
    /// What was taken out of each and not yet passed on.
    next: [Option<Message>; 2],
    ended: bool,
}

impl Ordered {
    pub fn new(one: MessageStream, other: MessageStream) -> Ordered {
        Ordered {
            streams: [one, other],
            next: [None, None],
            ended: false,
        }
    }

    fn fill(&mut self, which: usize, cx: &mut Context<'_>) {
        if self.next[which].is_none() {
            match self.streams[which].poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => self.next[which] = Some(message),
                Poll::Ready(_) => self.ended = true,
                Poll::Pending => {}
            }
        }
    }
}

impl Stream for Ordered {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.fill(0, cx);
        self.fill(1, cx);
        // zbus has one reader, which queues messages as they come: while this one waited in the second
        // stream, an earlier one may have come to the first, but none can come any more.
        self.fill(0, cx);
        let which = match &self.next {
            [Some(one), Some(other)] => usize::from(other.recv_position() < one.recv_position()),
            [Some(_), None] => 0,
            [None, Some(_)] => 1,
            [None, None] if self.ended => return Poll::Ready(None),
            [None, None] => return Poll::Pending,
        };
        Poll::Ready(self.next[which].take())
    }
}
