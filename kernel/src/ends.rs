// SPDX-License-Identifier: Apache-2.0
//! Ends of transactions: their half messages in the log, and the messages that these become.
//!
//! A half message is found by its offset in the log, and its record cut into its parts. Whoever ends
//! it has to name its place in its queue, and to be of its producer group. Whether it has ended before
//! is for Python to say, which gets a list of what a run ends.

use crate::bytes::{i32_at, i64_at};
use crate::properties::{Part, PlainProperties, Values};
use crate::record::{FIXED_BYTES, MAGIC_V1, record_at};
use crate::run::HOST_BYTES;
use std::collections::HashMap;
use std::ops::Range;

/// How many bytes of half messages are read for one run: those of a small frame may be many.
pub const MOST_HALF_BYTES: usize = 256 * 1024;
pub const MOST_TARGETS: usize = 4096;
const IPV6_HOSTS: i32 = 1 << 4 | 1 << 5;
const PREPARED: i32 = 1 << 2;
const COMMITTED: i32 = 1 << 3;
const TOPIC_NAME: &[u8] = b"REAL_TOPIC\x01";
const QUEUE_NAME: &[u8] = b"REAL_QID\x01";

/// The last file of the log, as far as it is written.
pub struct Log<'a> {
    pub view: &'a [u8],
    /// The log offset of its first byte.
    pub from_offset: i64,
    /// The log offset before which nothing is certain to be in memory.
    pub least: i64,
}

/// What Python found out about the header of an end when it decoded the first of its layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The producer group.
    pub group: Box<[u8]>,
    pub is_commit: bool,
    pub oneway: bool,
    pub code: i32,
}

/// A half message that a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub queue_id: i32,
    pub queue_offset: i64,
    pub born_ms: i64,
    /// Where it is to go, by its number in the table.
    pub target: u32,
    pub is_commit: bool,
}

/// What a message that is committed has of its half message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// The log offset of the file that the body is in, and of the half message.
    pub from_offset: i64,
    pub offset: i64,
    pub born: [u8; HOST_BYTES],
    pub host: [u8; HOST_BYTES],
}

/// A half message in the log, cut into its parts. The body and the text are places in the file.
#[derive(Debug, PartialEq)]
pub struct Half {
    pub size: usize,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub flag: i32,
    pub sys_flag: i32,
    pub born_ms: i64,
    pub reconsume: i32,
    pub body: Part,
    pub text: Range<usize>,
    pub origin: Origin,
}

/// What ends are checked with, and where their messages go.
pub struct Ends {
    /// The half topic.
    topic: Box<[u8]>,
    plain: PlainProperties,
    /// By the system flag of half messages and the properties that say where they are to go: the
    /// number of that, and of its queue.
    targets: HashMap<Vec<u8>, (u32, u32)>,
    key: Vec<u8>,
}

impl Ends {
    /// A half message with one of the touched names is left to Python.
    pub fn new(topic: &[u8], touched: Vec<Vec<u8>>) -> Ends {
        let plain = PlainProperties::new(touched);
        let topic = topic.get(1..).unwrap_or_default(); // behind its length
        Ends { topic: topic.into(), plain, targets: HashMap::new(), key: Vec::new() }
    }

    /// Adds where half messages with these properties and this flag are to go; returns its number.
    pub fn add(&mut self, queue: u32, real: &[u8], sys_flag: i32) -> Option<u32> {
        let number = u32::try_from(self.targets.len()).ok()?;
        let key = [&sys_flag.to_ne_bytes(), real].concat();
        if number as usize >= MOST_TARGETS || self.targets.contains_key(&key) {
            return None;
        }
        self.targets.insert(key, (number, queue));
        Some(number)
    }

    /// The half message at an offset; `None` if there is none, or an unusual one, or if it is perhaps
    /// not in memory.
    pub fn half_at(&self, log: &Log, offset: i64) -> Option<Half> {
        let view = log.view;
        if offset < log.least {
            return None;
        }
        let at = usize::try_from(offset.checked_sub(log.from_offset)?).ok()?;
        let found = record_at(view, log.from_offset, at, false)?;
        let topic = &view[found.topic_at..found.properties_at - 2];
        let (body_at, body_end) = (at + FIXED_BYTES, found.topic_at - 1);
        if i32_at(view, at + 4) != MAGIC_V1
            || found.sys_flag & IPV6_HOSTS != 0
            || *topic != *self.topic
            || body_end <= body_at
            || u32::try_from(found.end).is_err()
            // It may be one whose end was lost.
            || view[found.end - 1] == 0
        {
            return None;
        }
        let host = |at: usize| <[u8; HOST_BYTES]>::try_from(&view[at..at + HOST_BYTES]).ok();
        Some(Half {
            size: found.end - at,
            queue_id: found.queue_id,
            queue_offset: found.queue_offset,
            flag: i32_at(view, at + 16),
            sys_flag: found.sys_flag,
            born_ms: i64_at(view, at + 40),
            reconsume: i32_at(view, at + 72),
            body: Part { at: body_at as u32, bytes: (body_end - body_at) as u32 },
            text: found.properties_at..found.end,
            origin: Origin {
                from_offset: log.from_offset,
                offset,
                born: host(at + 48)?,
                host: host(at + 64)?,
            },
        })
    }

    /// What an end of this kind makes of a half message: its target, and the queue. The properties of
    /// the message are appended to `texts`, with where its values lie. `None` if Python has to look.
    pub fn target(
        &mut self,
        half: &Half,
        text: &[u8],
        ending: &Ending,
        texts: &mut Vec<u8>,
    ) -> Option<(u32, u32, Values)> {
        std::str::from_utf8(text).ok()?;
        let values = self.plain.of(text)?;
        if *values.group.of(text) != *ending.group
            || !values.uniq_key.of(text).iter().all(u8::is_ascii_alphanumeric)
        {
            return None;
        }
        let real = real_place(&values)?;
        self.key.clear();
        self.key.extend_from_slice(&half.sys_flag.to_ne_bytes());
        self.key.extend_from_slice(&text[real.clone()]);
        let (target, queue) = *self.targets.get(&self.key)?;
        let text_at = texts.len();
        let rest = &text[(real.end + 1).min(text.len())..];
        texts.extend_from_slice(&text[..real.start]);
        texts.extend_from_slice(rest);
        if !rest.is_empty() && rest.last() != Some(&2) {
            texts.push(2);
        }
        let less = real.len() + 1;
        let moved = |part: Part| match part {
            Part { bytes: 0, .. } => part,
            Part { at, .. } if (at as usize) < real.start => Part { at: at + text_at as u32, ..part },
            Part { at, .. } => Part { at: (at as usize - less + text_at) as u32, ..part },
        };
        let (uniq_key, keys, tags) = (moved(values.uniq_key), moved(values.keys), moved(values.tags));
        Some((target, queue, Values { uniq_key, keys, tags, ..Values::default() }))
    }
}

/// The system flag of a message whose half message has this one.
pub fn committed_flag(sys_flag: i32) -> i32 {
    sys_flag & !(PREPARED | COMMITTED) | COMMITTED
}

/// Where the two properties lie that say where a half message is to go; `None` unless they are one
/// behind the other, and behind others, as the broker has added them.
fn real_place(values: &Values) -> Option<Range<usize>> {
    let (topic, queue) = (values.real_topic, values.real_queue);
    let topic_end = (topic.at + topic.bytes) as usize;
    if !topic.is_there() || !queue.is_there() || queue.at as usize != topic_end + 1 + QUEUE_NAME.len() {
        return None;
    }
    let start = (topic.at as usize).checked_sub(TOPIC_NAME.len())?;
    (start > 0).then_some(start..(queue.at + queue.bytes) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::{binary, json};
    use crate::header::{JSON, ROCKETMQ};
    use crate::record::tests::record;
    use crate::record::walk;
    use crate::run::tests::target;
    use crate::run::{PackedUnits, Run};
    use crate::table::Table;
    use crate::table::tests::{TEXT, frame, table};

    const HALF: &[u8] =
        b"UNIQ_KEY\x01K1\x02PGROUP\x01g\x02REAL_TOPIC\x01T\x02REAL_QID\x010\x02TAGS\x01a\x02";
    const REAL: &[u8] = b"REAL_TOPIC\x01T\x02REAL_QID\x010";

    fn ending(is_commit: bool) -> Ending {
        Ending { group: b"g"[..].into(), is_commit, oneway: true, code: 37 }
    }

    fn header(offsets: (i64, i64), how: &str) -> Vec<u8> {
        format!(
            "{{\"code\":37,\"extFields\":{{\"producerGroup\":\"g\",\"tranStateTableOffset\":\"{}\",\
             \"commitLogOffset\":\"{}\",\"commitOrRollback\":\"{how}\",\"msgId\":\"A1\"}},\"opaque\":5}}",
            offsets.0, offsets.1
        )
        .into_bytes()
    }

    fn knowing() -> Table {
        let mut table = table();
        assert_eq!(table.add_target(0, REAL, 0), None);
        assert!(!table.learn_end(JSON, &header((1, 1), "8"), ending(true)));
        table.expect_ends(b"\x04half", vec![b"DELAY".to_vec()]);
        assert_eq!((table.add_target(0, REAL, 0), table.add_target(0, REAL, 0)), (Some(0), None));
        assert_eq!((table.add_target(9, REAL, 1), table.add_target(1, REAL, 1)), (None, Some(1)));
        assert!(table.learn_end(JSON, &header((1, 1), "8"), ending(true)));
        assert!(table.learn_end(JSON, &header((1, 1), "12"), ending(false)));
        let nobody = Ending { group: Box::default(), ..ending(true) };
        assert!(!table.learn_end(JSON, &header((1, 1), "9"), nobody));
        assert!(!table.learn_end(JSON, &json("1", "1", "", "T"), ending(true)));
        table
    }

    fn take(table: &mut Table, file: &[u8], data: &[u8]) -> Option<Run> {
        table.take_with(data, 0, Some(&Log { view: file, from_offset: 1_000, least: 1_000 }))
    }

    #[test]
    fn a_commit_writes_the_message_of_its_half_message_between_sends() {
        let mut table = knowing();
        let mut file = record(1_000, b"body", b"half", HALF);
        let (half, send) = (file.clone(), frame(JSON, &json("1", "17", TEXT, "T"), b"other"));
        let end = frame(JSON, &header((7, 1_000), "8"), b"");
        let data = [&end[..], &send, &end].concat();
        let mut run = take(&mut table, &file, &data).unwrap();
        assert_eq!((run.at, run.commands.len(), run.messages.len()), (data.len(), 3, 3));
        assert_eq!((run.waits, run.answered(), run.half_bytes), (Some(true), 1, 2 * half.len()));
        let ended = Ended { queue_id: 3, queue_offset: 7, born_ms: 1, target: 0, is_commit: true };
        assert_eq!(run.ended, [ended, ended]);
        let at = file.len();
        file.resize(at + run.size_bytes as usize, 0);
        for wrong in [target(at, 1), target(90, 1_090), target(at, at as i64)] {
            assert!(run.write(&table, &data, &mut file, &wrong, &[4], None).is_err());
        }
        let units =
            run.write(&table, &data, &mut file, &target(at, 1_000 + at as i64), &[4], None).unwrap();
        assert_eq!(units.iter().map(|its: &PackedUnits| its.packed.len()).sum::<usize>(), 60);
        assert_eq!(walk(&file, 1_000, at, usize::MAX, true).count, 3);
        let written = &file[at..];
        assert_eq!((i32_at(written, 36), i64_at(written, 40)), (8, 1));
        assert_eq!((&written[48..56], &written[64..72]), (&half[48..56], &half[64..72]));
        assert_eq!((i64_at(written, 76), &written[88..94]), (1_000, &b"body\x01T"[..]));
        let text = b"UNIQ_KEY\x01K1\x02PGROUP\x01g\x02TAGS\x01a\x02";
        assert_eq!(&written[96..96 + text.len()], text);
        assert_eq!((run.kinds(), run.halves()), (vec![(37, true, 2), (310, false, 1)], vec![]));
    }

    #[test]
    fn a_rollback_writes_nothing() {
        let mut table = knowing();
        let file = record(1_000, b"body", b"half", HALF);
        let run = take(&mut table, &file, &frame(JSON, &header((7, 1_000), "12"), b"")).unwrap();
        assert_eq!((run.messages.len(), run.texts.len(), run.size_bytes), (0, 0, 0));
        assert!(!run.ended[0].is_commit && run.queues.is_empty() && run.waits.is_none());
    }

    #[test]
    fn what_is_unusual_is_left_to_python() {
        let mut table = knowing();
        let usual = record(1_000, b"body", b"half", HALF);
        let end = |offsets| frame(JSON, &header(offsets, "8"), b"");
        let good = end((7, 1_000));
        let with = |text: &[u8]| record(1_000, b"body", b"half", text);
        let text = |from: &str, to: &str| with(String::from_utf8_lossy(HALF).replace(from, to).as_bytes());
        for file in [
            record(1_000, b"body", b"hall", HALF),
            record(1_000, b"", b"half", HALF),
            record(1_001, b"body", b"half", HALF),
            text("PGROUP\x01g", "PGROUP\x01h"),
            text("PGROUP\x01g\x02", ""),
            text("UNIQ_KEY\x01K1", "UNIQ_KEY\x01K-1"),
            text("REAL_QID\x010", "REAL_QID\x011"),
            text("REAL_QID\x010\x02", ""),
            text("\x02REAL_QID", "\x02x\x01y\x02REAL_QID"),
            text("TAGS\x01a", "DELAY\x011"),
            text("TAGS\x01a", "TAGS\x01"),
            with(&[REAL, b"\x02PGROUP\x01g\x02"].concat()),
            with(&[HALF, b"a\x01\xff"].concat()),
            with(&[HALF, b"a\x01\0"].concat()),
            usual[..usual.len() - 1].to_vec(),
        ] {
            assert!(take(&mut table, &file, &good).is_none());
        }
        for (at, value) in [(36, 16), (36, 32), (36, 2), (4, 0)] {
            let mut file = usual.clone();
            file[at + 3] = value;
            assert!(take(&mut table, &file, &good).is_none());
        }
        for data in [
            end((8, 1_000)),
            end((7, 999)),
            end((7, 1_001)),
            end((7, 1 << 50)),
            frame(JSON, &header((7, 1_000), "8"), b"x"),
            frame(JSON, &header((7, 1_000), "0"), b""),
        ] {
            assert!(take(&mut table, &usual, &data).is_none());
        }
        assert!(table.take(&good, 0).is_none());
        let late = Log { view: &usual, from_offset: 1_000, least: 1_001 };
        assert!(table.take_with(&good, 0, Some(&late)).is_none());
        assert!(take(&mut table, &usual, &good).is_some());
        assert!(take(&mut table, &text("TAGS\x01a\x02", "TAGS\x01a"), &good).is_some());
        table.wipe();
        assert!(take(&mut table, &usual, &good).is_none());
    }

    #[test]
    fn a_run_reads_no_more_than_so_many_bytes_of_half_messages() {
        let mut table = knowing();
        let file = record(1_000, &[7; 100_000], b"half", HALF);
        let data = frame(JSON, &header((7, 1_000), "8"), b"").repeat(5);
        assert_eq!(take(&mut table, &file, &data).unwrap().commands.len(), 2);
    }

    #[test]
    fn words_may_differ_and_have_to_be_words() {
        let mut table = knowing();
        let file = record(1_000, b"body", b"half", HALF);
        let fields = |id: &'static [u8]| {
            let offsets = [("tranStateTableOffset", &b"7"[..]), ("commitLogOffset", b"1000")];
            frame(
                ROCKETMQ,
                &binary(1, &[offsets[0], offsets[1], ("msgId", id), ("producerGroup", b"g")]),
                b"",
            )
        };
        let first = fields(b"A");
        assert!(table.learn_end(ROCKETMQ, &first[8..], ending(true)));
        for (id, is_one) in
            [(&b"A"[..], true), (b"b9", true), (b"", false), (b"a-b", false), (b"\xff", false)]
        {
            assert_eq!(take(&mut table, &file, &fields(id)).is_some(), is_one);
        }
        let good = String::from_utf8(header((7, 1_000), "8")).unwrap();
        for (id, is_one) in [("Z", true), ("", false), ("a b", false), ("\\u0041", false)] {
            let other = good.replace("A1", id);
            assert_eq!(take(&mut table, &file, &frame(JSON, other.as_bytes(), b"")).is_some(), is_one);
        }
    }
}
