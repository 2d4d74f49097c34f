//! The whole file: lines in the order in which they were written, which is not always that of their clocks.

use crate::snapshot::Snapshot;

/// Lines that are kept: two weeks of five minutes each.
pub const MAX_LINES: usize = 4096;
/// Bytes that are kept.
pub const MAX_BYTES: usize = 3 << 20;

/// A file, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// In the file's order.
    pub snapshots: Vec<Snapshot>,
    /// Lines that are no snapshots.
    pub skipped: usize,
}

impl History {
    /// Reads each line that can be read: one that a crash or a full disk tore takes no other with it.
    pub fn parse(text: &[u8]) -> History {
        let mut history = History::default();
        for line in lines(text) {
            match Snapshot::parse(line) {
                Some(snapshot) => history.snapshots.push(snapshot),
                None => history.skipped += 1,
            }
        }
        history
    }

    /// Those since a moment, the newest `max` of them. One from a clock that ran ahead is among them.
    pub fn since(&self, since: u64, max: usize) -> Vec<&Snapshot> {
        let found: Vec<&Snapshot> = self
            .snapshots
            .iter()
            .filter(|snapshot| snapshot.ts >= since)
            .collect();
        found[found.len().saturating_sub(max)..].to_vec()
    }
}

/// What is left of a file that has grown past its bounds; none when it has not. A good part more than
/// needed is dropped, so that it is not written anew for each line. The oldest lines go, by their place and
/// not by their clock: a clock that was wrong once would take everything with it. Lines are kept as they
/// are, with the keys of other versions.
pub fn retained(text: &[u8]) -> Option<&[u8]> {
    let starts: Vec<usize> = lines(text).map(|line| offset(text, line)).collect();
    if starts.len() <= MAX_LINES && text.len() <= MAX_BYTES {
        return None;
    }
    let by_count = starts.len().saturating_sub(MAX_LINES / 8 * 7);
    let room = MAX_BYTES / 8 * 7;
    let by_size = starts.partition_point(|start| text.len() - start > room);
    let from = by_count.max(by_size);
    Some(starts.get(from).map_or(&[], |start| &text[*start..]))
}

pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
}

fn offset(text: &[u8], line: &[u8]) -> usize {
    line.as_ptr() as usize - text.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snapshot::tests::at;

    fn file(count: u64) -> Vec<u8> {
        (0..count).flat_map(|n| at(n * 300).line()).collect()
    }

    #[test]
    fn a_torn_line_takes_no_other_with_it() {
        let whole = file(3);
        for cut in 0..whole.len() {
            let read = History::parse(&whole[..cut]);
            let ended = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            // The last line is whole without its newline too.
            assert!(read.snapshots.len() == ended || read.snapshots.len() == ended + 1);
            assert!(read.skipped <= 1);
        }
        let mut middle = whole[..40].to_vec();
        middle.push(b'\n');
        middle.extend(&whole);
        let read = History::parse(&middle);
        assert_eq!((read.snapshots.len(), read.skipped), (3, 1));
    }

    #[test]
    fn a_clock_that_was_wrong_takes_nothing_with_it() {
        let mut text = file(10);
        text.extend(at(9_999_999_999).line());
        text.extend(at(1).line());
        assert_eq!(retained(&text), None);
        assert_eq!(History::parse(&text).snapshots.len(), 12);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        assert_eq!(retained(&file(MAX_LINES as u64)), None);
        let text = file(MAX_LINES as u64 + 1);
        let kept = History::parse(retained(&text).expect("too many"));
        assert_eq!(kept.snapshots.len(), MAX_LINES / 8 * 7);
        assert_eq!(
            kept.snapshots.last().map(|last| last.ts),
            Some(MAX_LINES as u64 * 300)
        );
        assert_eq!(kept.skipped, 0);
    }

    #[test]
    fn a_line_longer_than_the_file_may_be_goes_as_well() {
        let text = vec![b'x'; MAX_BYTES + 1];
        assert_eq!(retained(&text), Some(&[][..]));
    }

    #[test]
    fn the_newest_are_answered_when_there_are_more_than_asked_for() {
        let history = History::parse(&file(10));
        let stamps = |since, max| -> Vec<u64> {
            history
                .since(since, max)
                .iter()
                .map(|snapshot| snapshot.ts)
                .collect()
        };
        assert_eq!(stamps(2400, 5), [2400, 2700]);
        assert_eq!(stamps(0, 2), [2400, 2700]);
        assert!(stamps(9000, 2).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let read = History::parse(&text);
            prop_assert!(read.snapshots.len() + read.skipped <= text.len());
        }
    }
}
