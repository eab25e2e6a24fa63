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
