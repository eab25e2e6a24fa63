// SPDX-License-Identifier: Apache-2.0
//! The sends and ends of one read that were taken: their records, units and index rows.

use crate::bytes::Cursor;
use crate::ends::{Ended, Origin};
use crate::properties::{Part, Values};
use crate::record::FIXED_BYTES;
use crate::rows::Rows;
use crate::table::{Table, Teaching};

pub const UNIT_BYTES: usize = 20;
pub const HOST_BYTES: usize = 8;

/// Where the properties of a message are: among the texts of the run, or in the frame as sent.
#[derive(Clone, Copy)]
pub enum Text {
    Own(Part),
    Sent(Part),
}

impl Text {
    pub fn part(self) -> Part {
        match self {
            Text::Own(part) | Text::Sent(part) => part,
        }
    }
}

/// One message; its values lie where its text is.
pub struct Message {
    pub body: Part,
    pub text: Text,
    values: Values,
    tags_code: i64,
    born_ms: i64,
    flag: i32,
    sys_flag: i32,
    reconsume: i32,
    /// The number of its queue among those of the run.
    pub slot: u32,
    /// What it has of its half message, by its number in the run: then the body is in the log.
    pub origin: Option<u32>,
    /// Its offset in the log and in its queue, once it is written.
    pub offset: i64,
    pub queue_offset: i64,
}

impl Message {
    pub fn new(
        teaching: Teaching,
        born_ms: i64,
        body: Part,
        text: Text,
        values: Values,
        tags_code: i64,
    ) -> Message {
        Message {
            body,
            text,
            values,
            tags_code,
            born_ms,
            flag: teaching.flag,
            sys_flag: teaching.sys_flag,
            reconsume: teaching.reconsume,
            slot: 0,
            origin: None,
            offset: -1,
            queue_offset: -1,
        }
    }
}

/// One request: its messages, and the key that its answer repeats.
pub struct Command {
    pub opaque: i32,
    pub oneway: bool,
    pub code: i32,
    pub queue_id: i32,
    /// Where a half message is to go, by its number in the table.
    pub half: Option<u32>,
    pub first: u32,
    pub count: u32,
    pub key: Part,
}

/// How many messages a queue gets, and how many bytes their records have.
pub struct OfQueue {
    pub queue: u32,
    pub messages: u32,
    pub bytes: u64,
}

/// The units of one queue, and where in the log their messages begin and end.
#[derive(Debug, Default, PartialEq)]
pub struct PackedUnits {
    pub offset: i64,
    pub packed: Vec<u8>,
    pub end_offset: i64,
}

impl PackedUnits {
    pub fn new(messages: usize) -> PackedUnits {
        let packed = Vec::with_capacity(messages * UNIT_BYTES);
        PackedUnits { offset: -1, packed, end_offset: -1 }
    }

    /// Adds the unit of a message, which lies behind those of the others.
    pub fn push(&mut self, offset: i64, size: i32, tags_code: i64) {
        let mut unit = [0; UNIT_BYTES];
        unit[..8].copy_from_slice(&offset.to_be_bytes());
        unit[8..12].copy_from_slice(&size.to_be_bytes());
        unit[12..].copy_from_slice(&tags_code.to_be_bytes());
        if self.packed.is_empty() {
            self.offset = offset;
        }
        self.packed.extend_from_slice(&unit);
        self.end_offset = offset.saturating_add(i64::from(size));
    }
}

/// Where records are to lie, and what all of them have.
pub struct Target {
    pub at: usize,
    pub offset: i64,
    pub now_ms: i64,
    pub born: [u8; HOST_BYTES],
    pub host: [u8; HOST_BYTES],
}

pub struct Run {
    pub table: u64,
    /// How many bytes were taken.
    pub at: usize,
    pub commands: Vec<Command>,
    pub messages: Vec<Message>,
    pub queues: Vec<OfQueue>,
    /// The properties of single messages as they are stored, and those of the headers of batches.
    pub texts: Vec<u8>,
    /// The half messages that it ends, and what those that are committed give to their messages.
    pub ended: Vec<Ended>,
    pub origins: Vec<Origin>,
    /// How many bytes these half messages have.
    pub half_bytes: usize,
    /// Whether senders wait for the confirmation; nothing is said while there are only ends.
    pub waits: Option<bool>,
    pub size_bytes: u64,
    pub most_bytes: u64,
    pub is_written: bool,
}

impl Run {
    pub fn new(table: u64) -> Run {
        Run {
            table,
            at: 0,
            commands: Vec::new(),
            messages: Vec::new(),
            queues: Vec::new(),
            texts: Vec::new(),
            ended: Vec::new(),
            origins: Vec::new(),
            half_bytes: 0,
            waits: None,
            size_bytes: 0,
            most_bytes: 0,
            is_written: false,
        }
    }

    /// The opaques of the requests that want an answer.
    pub fn opaques(&self) -> Vec<i32> {
        let wanted = self.commands.iter().filter(|command| !command.oneway);
        wanted.map(|command| command.opaque).collect()
    }

    /// How many requests want an answer.
    pub fn answered(&self) -> usize {
        self.commands.iter().filter(|command| !command.oneway).count()
    }

    /// How many requests there are of each code, one-way or not, in the order of their first.
    pub fn kinds(&self) -> Vec<(i32, bool, usize)> {
        let mut kinds: Vec<(i32, bool, usize)> = Vec::new();
        for command in &self.commands {
            let kind = kinds.iter_mut().find(|kind| (kind.0, kind.1) == (command.code, command.oneway));
            match kind {
                Some(kind) => kind.2 += 1,
                None => kinds.push((command.code, command.oneway, 1)),
            }
        }
        kinds
    }

    /// How many half messages there are for each place where some are to go.
    pub fn halves(&self) -> Vec<(u32, usize)> {
        let mut halves: Vec<(u32, usize)> = Vec::new();
        for number in self.commands.iter().filter_map(|command| command.half) {
            match halves.iter_mut().find(|half| half.0 == number) {
                Some(half) => half.1 += 1,
                None => halves.push((number, 1)),
            }
        }
        halves
    }

    fn why_not(&self, table: &Table, map: &[u8], target: &Target, nexts: &[i64]) -> Option<&'static str> {
        let end = (target.at as u64).checked_add(self.size_bytes);
        let log_end = target.offset.checked_add_unsigned(self.size_bytes);
        let is_there = |message: &Message| {
            let Some(origin) = message.origin else { return true };
            let begin = target.offset.checked_sub_unsigned(target.at as u64);
            let end = message.body.at as usize + message.body.bytes as usize;
            begin == Some(self.origins[origin as usize].from_offset) && end <= target.at
        };
        let fits = |(next, of_queue): (&i64, &OfQueue)| {
            *next >= 0 && next.checked_add(i64::from(of_queue.messages)).is_some()
        };
        if self.table != table.id {
            Some("the run is of another table")
        } else if self.is_written {
            Some("the run is written already")
        } else if nexts.len() != self.queues.len() || !nexts.iter().zip(&self.queues).all(fits) {
            Some("there has to be a next offset for each queue of the run")
        } else if target.offset < 0 || log_end.is_none() {
            Some("the records do not fit into the log")
        } else if end.is_none_or(|end| end > map.len() as u64) {
            Some("the records do not fit into the map")
        } else if !self.origins.is_empty() && !self.messages.iter().all(is_there) {
            Some("the half messages are not in the map")
        } else {
            None
        }
    }

    /// Writes the records into the map; returns the units of each queue. If it fails, that is
    /// before anything is written.
    pub fn write(
        &mut self,
        table: &Table,
        data: &[u8],
        map: &mut [u8],
        target: &Target,
        nexts: &[i64],
        mut rows: Option<&mut Rows>,
    ) -> Result<Vec<PackedUnits>, &'static str> {
        if let Some(why) = self.why_not(table, map, target, nexts) {
            return Err(why);
        }
        self.is_written = true;
        let mut units: Vec<PackedUnits> =
            self.queues.iter().map(|of_queue| PackedUnits::new(of_queue.messages as usize)).collect();
        let mut nexts = nexts.to_vec();
        let (mut at, mut offset) = (target.at, target.offset);
        for message in &mut self.messages {
            let slot = message.slot as usize;
            let queue = &table.queues[self.queues[slot].queue as usize];
            let text_of = match message.text {
                Text::Own(_) => &self.texts[..],
                Text::Sent(_) => data,
            };
            let text = message.text.part().of(text_of);
            let body_bytes = message.body.bytes as usize;
            let size = FIXED_BYTES + body_bytes + queue.record_topic.len() + 2 + text.len();
            message.offset = offset;
            message.queue_offset = nexts[slot];
            nexts[slot] += 1;
            let origin = message.origin.map(|number| self.origins[number as usize]);
            let body_at = at + FIXED_BYTES;
            let crc = match origin {
                None => crc32fast::hash(message.body.of(data)),
                Some(_) => crc32fast::hash(message.body.of(map)),
            };
            let mut to = Cursor::new(&mut map[at..at + size], 0);
            to.i32(size as i32);
            to.i32(queue.magic);
            to.i32((crc & 0x7fff_ffff) as i32);
            to.i32(queue.queue_id);
            to.i32(message.flag);
            to.i64(message.queue_offset);
            to.i64(offset);
            to.i32(message.sys_flag);
            to.i64(message.born_ms);
            to.bytes(origin.as_ref().map_or(&target.born, |origin| &origin.born));
            to.i64(target.now_ms);
            to.bytes(origin.as_ref().map_or(&target.host, |origin| &origin.host));
            to.i32(message.reconsume);
            to.i64(origin.as_ref().map_or(0, |origin| origin.offset));
            to.i32(body_bytes as i32);
            match origin {
                None => to.bytes(message.body.of(data)),
                Some(_) => {
                    let begin = message.body.at as usize;
                    map.copy_within(begin..begin + body_bytes, body_at);
                    to = Cursor::new(&mut map[at..at + size], FIXED_BYTES + body_bytes);
                }
            }
            to.bytes(&queue.record_topic);
            to.u16(text.len() as u16);
            to.bytes(text);
            units[slot].push(offset, size as i32, message.tags_code);
            if let Some(rows) = rows.as_deref_mut() {
                let values = &message.values;
                rows.add_message(
                    (queue.keys_hash, queue.tags_hash),
                    (values.uniq_key.of(text_of), values.keys.of(text_of), values.tags.of(text_of)),
                    offset,
                    target.now_ms,
                );
            }
            at += size;
            offset += size as i64;
        }
        Ok(units)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::header::JSON;
    use crate::header::tests::json;
    use crate::record::walk;
    use crate::table::tests::{TEXT, entry, frame, table};

    pub fn target(at: usize, offset: i64) -> Target {
        Target { at, offset, now_ms: 1_700_000_000_000, born: [1; 8], host: [2; 8] }
    }

    #[test]
    fn records_are_those_that_a_walk_finds() {
        let mut table = table();
        let mut data = frame(JSON, &json("1", "17", TEXT, "T"), b"body");
        data.extend(frame(JSON, &json("2", "17", TEXT, "U"), b"other"));
        let batch = [entry(b"one", b"KEYS\x01a  b\x02"), entry(b"", b"TAGS\x01t")].concat();
        data.extend(frame(JSON, &json("3", "17", "", "B"), &batch));
        let mut run = table.take(&data, 0).unwrap();
        let mut rows = Rows::default();
        let mut map = vec![0; 10 + run.size_bytes as usize];
        let units =
            run.write(&table, &data, &mut map, &target(10, 1010), &[4, 0], Some(&mut rows)).unwrap();
        let found = walk(&map, 1000, 10, usize::MAX, true);
        assert_eq!((found.position, found.count), (map.len(), 4));
        assert_eq!(units.iter().map(|its| its.packed.len()).collect::<Vec<_>>(), [60, 20]);
        assert_eq!((units[0].offset, units[0].end_offset), (1010, 1000 + map.len() as i64));
        assert_eq!(units[1].end_offset, units[1].offset + run.queues[1].bytes as i64);
        let places: Vec<i64> = run.messages.iter().map(|message| message.queue_offset).collect();
        assert_eq!(places, [4, 0, 5, 6]);
        assert_eq!(rows.len(), 5);
        let again = run.write(&table, &data, &mut map, &target(10, 1010), &[4, 0], None);
        assert_eq!(again, Err("the run is written already"));
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_written() {
        let mut table = table();
        let data = frame(JSON, &json("1", "17", TEXT, "T"), b"body");
        let mut run = table.take(&data, 0).unwrap();
        let size = run.size_bytes as usize;
        let mut map = vec![7; size];
        let other = crate::table::tests::table();
        for (its, at, offset, nexts) in [
            (&other, 0, 0, &[0][..]),
            (&table, 1, 0, &[0]),
            (&table, usize::MAX, 0, &[0]),
            (&table, 0, i64::MAX, &[0]),
            (&table, 0, -1, &[0]),
            (&table, 0, 0, &[]),
            (&table, 0, 0, &[i64::MAX]),
            (&table, 0, 0, &[-1]),
        ] {
            assert!(run.write(its, &data, &mut map, &target(at, offset), nexts, None).is_err());
        }
        assert_eq!(map, vec![7; size]);
        assert!(run.write(&table, &data, &mut map, &target(0, 0), &[0], None).is_ok());
    }
}
