// SPDX-License-Identifier: Apache-2.0
//! The places that were learned, and the sends that go there, or the ends of their transactions.

use crate::bytes::{i32_at, u16_at, u32_at};
use crate::ends::{Ended, Ending, Ends, Log, MOST_HALF_BYTES, committed_flag};
use crate::hash::{continued, tags_code};
use crate::header::{ENDS, JSON, Layout, ROCKETMQ, SENDS, Varying, key_and_varying, key_of};
use crate::lasts::Lasts;
use crate::properties::{Part, PlainProperties, Values};
use crate::record::{FIXED_BYTES, MAGIC_V1, MAGIC_V2};
use crate::run::{Command, Message, OfQueue, Run, Text};
use crate::signature::{Accounts, Signed};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

pub const MOST_PLACES: usize = 4096;
pub const MOST_COMMANDS: usize = 256;
/// No run has more units than this, as no read has in Python.
pub const MOST_MESSAGES: usize = 1024;
/// A batch with more messages than this is a long one, which is stored in turns.
pub const MOST_IN_BATCH: usize = 512;
pub const MOST_PROPERTIES_BYTES: usize = 0x7fff;
const MOST_FRAME_BYTES: usize = 16 * 1024 * 1024;
const PREFIX_BYTES: usize = 8;
const ENTRY_BYTES: usize = 20;
/// The number of no place.
const NOWHERE: usize = usize::MAX;

static TABLES: AtomicU64 = AtomicU64::new(0);

/// A queue, as far as records, answers and the index need it.
pub struct Queue {
    pub record_topic: Box<[u8]>,
    pub magic: i32,
    pub queue_id: i32,
    /// The hash of the topic and "#", which keys continue, and of that and "T#".
    pub keys_hash: u32,
    pub tags_hash: u32,
    /// The run that has used it last, and its number there.
    seen: (u64, u32),
}

/// What Python found out about a header when it decoded the first of its layout.
#[derive(Clone, Copy)]
pub struct Teaching {
    pub queue: u32,
    pub is_batch: bool,
    pub oneway: bool,
    pub flag: i32,
    pub sys_flag: i32,
    pub reconsume: i32,
    /// The code of the requests.
    pub code: i32,
    /// Where half messages are to go once they are committed; `None` for messages that are none.
    pub half: Option<u32>,
}

/// Where half messages are to go once they are committed.
struct Half {
    queue_id: i32,
    /// The properties that say so, before and behind the unique key.
    before: Box<[u8]>,
    behind: Box<[u8]>,
}

/// What the requests of a place are.
#[derive(Clone, Copy)]
enum Kind {
    Send(Teaching),
    /// The number of its ending in the table.
    End(u32),
}

struct Place {
    layout: Layout,
    kind: Kind,
    /// From where such requests are allowed, and what is signed of them; 0 and `None` if nobody has
    /// to sign.
    origin: u64,
    signed: Option<Signed>,
    /// The place of the header that came next the last time.
    next: usize,
}

pub struct Table {
    pub id: u64,
    pub queues: Vec<Queue>,
    places: Vec<Place>,
    numbers: HashMap<Vec<u8>, usize>,
    plain: PlainProperties,
    plain_in_batch: PlainProperties,
    plain_in_half: PlainProperties,
    own: Vec<u8>,
    halves: Vec<Half>,
    /// What ends are checked with; `None` while none are taken.
    ends: Option<Ends>,
    endings: Vec<Ending>,
    accounts: Accounts,
    /// The place of the header that came last from each origin, and from that of this run.
    lasts: Lasts,
    last: usize,
    runs: u64,
    /// Whether what could not be taken last is an end, for which the log is needed.
    is_at_end: bool,
}

impl Table {
    pub fn new(
        touched: Vec<Vec<u8>>,
        touched_in_batch: Vec<Vec<u8>>,
        touched_in_half: Vec<Vec<u8>>,
        own: Vec<u8>,
    ) -> Table {
        Table {
            id: TABLES.fetch_add(1, Ordering::Relaxed),
            queues: Vec::new(),
            places: Vec::new(),
            numbers: HashMap::new(),
            plain: PlainProperties::new(touched),
            plain_in_batch: PlainProperties::new(touched_in_batch),
            plain_in_half: PlainProperties::new(touched_in_half),
            own,
            halves: Vec::new(),
            ends: None,
            endings: Vec::new(),
            accounts: Accounts::default(),
            lasts: Lasts::default(),
            last: NOWHERE,
            runs: 0,
            is_at_end: false,
        }
    }

    /// Adds a queue; returns its number, or `None` if that is no topic of a record.
    pub fn add_queue(&mut self, record_topic: &[u8], magic: i32, queue_id: i32) -> Option<u32> {
        let (length, topic) = match magic {
            MAGIC_V1 => (usize::from(*record_topic.first()?), &record_topic[1..]),
            MAGIC_V2 if record_topic.len() >= 2 => {
                (usize::from(u16_at(record_topic, 0)), &record_topic[2..])
            }
            _ => return None,
        };
        if length != topic.len() || std::str::from_utf8(topic).is_err() {
            return None;
        }
        let number = u32::try_from(self.queues.len()).ok()?;
        let keys_hash = continued(continued(0, topic), b"#");
        self.queues.push(Queue {
            record_topic: record_topic.into(),
            magic,
            queue_id,
            keys_hash,
            tags_hash: continued(keys_hash, b"T#"),
            seen: (0, 0),
        });
        Some(number)
    }

    /// Adds where half messages are to go once they are committed; returns its number.
    pub fn add_half(&mut self, queue_id: i32, before: &[u8], behind: &[u8]) -> Option<u32> {
        let number = u32::try_from(self.halves.len()).ok()?;
        self.halves.push(Half { queue_id, before: before.into(), behind: behind.into() });
        Some(number)
    }

    /// Has ends of transactions taken: `topic` is that of half messages, as records have it, and those
    /// with one of the touched properties are not taken.
    pub fn expect_ends(&mut self, topic: &[u8], touched: Vec<Vec<u8>>) {
        self.ends = Some(Ends::new(topic, touched));
    }

    /// Adds where half messages with this flag and these two properties are to go; returns its number,
    /// or `None` if no ends are expected, or if it is known.
    pub fn add_target(&mut self, queue: u32, real: &[u8], sys_flag: i32) -> Option<u32> {
        if queue as usize >= self.queues.len() {
            return None;
        }
        self.ends.as_mut()?.add(queue, real, sys_flag)
    }

    /// Learns what ends with headers like this one are, which nobody has to sign; returns whether they
    /// can be told from others.
    pub fn learn_end(&mut self, kind: u8, header: &[u8], ending: Ending) -> bool {
        let (Some(layout), Some(mut key)) = (Layout::of(kind, header, &ENDS), key_of(kind, header, &ENDS))
        else {
            return false;
        };
        // What could be the header of a send is looked up as such.
        let is_send = key_of(kind, header, &SENDS).is_some();
        if self.ends.is_none() || layout.is_signed() || ending.group.is_empty() || is_send {
            return false;
        }
        key.extend_from_slice(&0u64.to_ne_bytes());
        if self.numbers.contains_key(&key) {
            return true;
        }
        if self.places.len() >= MOST_PLACES {
            self.forget();
        }
        let kind = Kind::End(self.endings.len() as u32);
        self.endings.push(ending);
        self.add_place(key, Place { layout, kind, origin: 0, signed: None, next: 0 });
        true
    }

    /// Adds an account by its secret as HMAC uses it; returns its number.
    pub fn add_account(&mut self, key: &[u8]) -> Option<u32> {
        self.accounts.add(key)
    }

    /// Forgets all places and accounts. Their secrets are overwritten.
    pub fn wipe(&mut self) {
        self.forget();
        self.accounts.wipe();
    }

    fn forget(&mut self) {
        self.places.clear();
        self.numbers.clear();
        self.lasts.clear();
        self.endings.clear();
    }

    /// Learns where headers like this one go; returns whether they can be told from others. Those
    /// of an account are taken from the same origin only, which is not 0.
    pub fn learn(
        &mut self,
        kind: u8,
        header: &[u8],
        teaching: Teaching,
        origin: u64,
        account: Option<u32>,
    ) -> bool {
        let is_half = |half: u32| (half as usize) < self.halves.len() && !teaching.is_batch;
        if teaching.queue as usize >= self.queues.len() || !teaching.half.is_none_or(is_half) {
            return false;
        }
        let (Some(layout), Some(mut key)) =
            (Layout::of(kind, header, &SENDS), key_of(kind, header, &SENDS))
        else {
            return false;
        };
        let Some(signed) = Signed::by(&layout, kind, header, &SENDS, &self.accounts, (origin, account))
        else {
            return false;
        };
        key.extend_from_slice(&origin.to_ne_bytes());
        if self.numbers.contains_key(&key) {
            return true;
        }
        self.add_place(key, Place { layout, kind: Kind::Send(teaching), origin, signed, next: 0 });
        true
    }

    fn add_place(&mut self, key: Vec<u8>, place: Place) {
        if self.places.len() >= MOST_PLACES {
            self.forget();
        }
        let next = self.places.len();
        self.places.push(Place { next, ..place });
        self.numbers.insert(key, next);
    }

    /// Takes the longest beginning of whole frames that are plain sends from an origin, and signed as
    /// they should be; `None` if there is none.
    pub fn take(&mut self, data: &[u8], origin: u64) -> Option<Run> {
        self.take_with(data, origin, None)
    }

    /// Does the same, and takes ends of transactions as well whose half messages are in the last file
    /// of the log.
    pub fn take_with(&mut self, data: &[u8], origin: u64, log: Option<&Log>) -> Option<Run> {
        let mut run = self.begin(origin);
        self.take_more(data, origin, log, &mut run);
        self.finished(run)
    }

    /// Begins to take from an origin.
    pub fn begin(&mut self, origin: u64) -> Run {
        self.runs += 1;
        self.last = self.lasts.of(origin).unwrap_or(NOWHERE);
        Run::new(self.id)
    }

    /// Takes what comes next; returns whether there is an end, for which the log is needed.
    pub fn take_more(&mut self, data: &[u8], origin: u64, log: Option<&Log>, run: &mut Run) -> bool {
        self.is_at_end = false;
        while run.commands.len() < MOST_COMMANDS && run.messages.len() < MOST_MESSAGES {
            let kept = (run.texts.len(), run.messages.len(), run.most_bytes);
            if self.take_frame(data, origin, log, run).is_none() {
                run.texts.truncate(kept.0);
                run.messages.truncate(kept.1);
                run.most_bytes = kept.2;
                break;
            }
        }
        self.is_at_end
    }

    /// What was taken; `None` if that is nothing.
    pub fn finished(&mut self, run: Run) -> Option<Run> {
        if run.commands.is_empty() {
            return None;
        }
        self.lasts.set(self.last);
        Some(run)
    }

    /// Takes one frame; if it returns `None`, texts and messages may have been added in vain.
    fn take_frame(&mut self, data: &[u8], origin: u64, log: Option<&Log>, run: &mut Run) -> Option<()> {
        let rest = data.get(run.at..)?;
        if rest.len() < PREFIX_BYTES {
            return None;
        }
        let (length, mark) = (u32_at(rest, 0) as usize, u32_at(rest, 4));
        let (kind, header_bytes) = ((mark >> 24) as u8, (mark & 0xff_ffff) as usize);
        let (header_end, end) = (PREFIX_BYTES + header_bytes, length.checked_add(4)?);
        if end > MOST_FRAME_BYTES || header_end > end || end > rest.len() {
            return None;
        }
        let header = &rest[PREFIX_BYTES..header_end];
        let text_at = run.texts.len();
        let (number, varying) = self.find(kind, header, origin, &mut run.texts)?;
        let teaching = match self.places[number].kind {
            Kind::Send(teaching) => teaching,
            Kind::End(ending) => {
                if header_end != end {
                    return None;
                }
                if log.is_none() {
                    self.is_at_end = true;
                }
                self.take_end(log?, ending, varying, run)?;
                run.at += end;
                self.last = number;
                return Some(());
            }
        };
        let plain = if teaching.half.is_some() { &mut self.plain_in_half } else { &mut self.plain };
        let values = plain.of(&run.texts[text_at..])?;
        if teaching.half.is_some() && !values.is_half(&run.texts[text_at..]) {
            return None;
        }
        if !values.wait.of(&run.texts[text_at..]).is_ascii() {
            return None;
        }
        let waits = values.waits(&run.texts[text_at..]);
        if run.waits.is_some_and(|before| waits != before) {
            return None;
        }
        let body = Part { at: (run.at + header_end) as u32, bytes: (end - header_end) as u32 };
        if !body.is_there() {
            return None;
        }
        let key = moved(values.uniq_key, text_at);
        if !key.of(&run.texts).iter().all(u8::is_ascii_alphanumeric) {
            return None;
        }
        if let Some(signed) = &self.places[number].signed {
            let (text, body) = (&run.texts[text_at..], &rest[header_end..end]);
            if !signed.is_right(&self.accounts, header, &varying, text, body) {
                return None;
            }
        }
        let first = run.messages.len();
        if teaching.is_batch {
            run.most_bytes = run.most_bytes.max(u64::from(body.bytes));
            self.take_entries(data, body, teaching, varying.numbers[0], run)?;
            if !run.commands.is_empty() && run.messages.len() > MOST_MESSAGES {
                return None;
            }
        } else {
            if !key.is_there() {
                return None;
            }
            self.add_properties(teaching, key, &mut run.texts);
            let text = Part { at: text_at as u32, bytes: (run.texts.len() - text_at) as u32 };
            let code = tags_code(values.tags.of(&run.texts[text_at..]));
            let values = moved_values(values, text_at);
            let message = Message::new(teaching, varying.numbers[0], body, Text::Own(text), values, code);
            run.messages.push(message);
        }
        let slots = &run.messages[first..];
        if slots.iter().any(|message| message.text.part().bytes as usize > MOST_PROPERTIES_BYTES) {
            return None;
        }
        self.count(run, first, teaching.queue);
        run.waits = Some(waits);
        run.at += end;
        self.last = number;
        run.commands.push(Command {
            opaque: varying.opaque,
            oneway: teaching.oneway,
            code: teaching.code,
            queue_id: match teaching.half {
                Some(half) => self.halves[half as usize].queue_id,
                None => self.queues[teaching.queue as usize].queue_id,
            },
            half: teaching.half,
            first: first as u32,
            count: (run.messages.len() - first) as u32,
            key,
        });
        Some(())
    }

    /// Takes one end, whose half message has to be in the log.
    fn take_end(&mut self, log: &Log, ending: u32, varying: Varying, run: &mut Run) -> Option<()> {
        let (ending, ends) = (self.endings.get(ending as usize)?, self.ends.as_mut()?);
        let [queue_offset, offset] = varying.numbers;
        let half = ends.half_at(log, offset)?;
        if half.queue_offset != queue_offset || run.half_bytes + half.size > MOST_HALF_BYTES {
            return None;
        }
        let text_at = run.texts.len();
        let (target, queue, values) =
            ends.target(&half, &log.view[half.text.clone()], ending, &mut run.texts)?;
        let (code, first) = (ending.code, run.messages.len());
        let (is_commit, oneway) = (ending.is_commit, ending.oneway);
        if is_commit {
            let text = Part { at: text_at as u32, bytes: (run.texts.len() - text_at) as u32 };
            if text.bytes as usize > MOST_PROPERTIES_BYTES {
                return None;
            }
            let teaching = Teaching {
                queue,
                is_batch: false,
                oneway,
                flag: half.flag,
                sys_flag: committed_flag(half.sys_flag),
                reconsume: half.reconsume,
                code,
                half: None,
            };
            let tag = tags_code(values.tags.of(&run.texts));
            let mut message = Message::new(teaching, half.born_ms, half.body, Text::Own(text), values, tag);
            message.origin = Some(run.origins.len() as u32);
            run.origins.push(half.origin);
            run.messages.push(message);
            self.count(run, first, queue);
        } else {
            run.texts.truncate(text_at);
        }
        run.half_bytes += half.size;
        let (queue_id, born_ms) = (half.queue_id, half.born_ms);
        run.ended.push(Ended { queue_id, queue_offset, born_ms, target, is_commit });
        run.commands.push(Command {
            opaque: varying.opaque,
            oneway,
            code,
            queue_id: 0,
            half: None,
            first: first as u32,
            count: (run.messages.len() - first) as u32,
            key: Part::default(),
        });
        Some(())
    }

    /// Adds what the broker adds to the properties of a single message, whose text ends there.
    fn add_properties(&self, teaching: Teaching, key: Part, texts: &mut Vec<u8>) {
        if texts.last() != Some(&2) {
            texts.push(2);
        }
        if let Some(half) = teaching.half.map(|number| &self.halves[number as usize]) {
            texts.extend_from_slice(&half.before);
            texts.extend_from_within(key.at as usize..(key.at + key.bytes) as usize);
            texts.extend_from_slice(&half.behind);
        }
        texts.extend_from_slice(&self.own);
    }

    /// The place of a header, and what is in its holes.
    fn find(
        &mut self,
        kind: u8,
        header: &[u8],
        origin: u64,
        texts: &mut Vec<u8>,
    ) -> Option<(usize, Varying)> {
        if kind != JSON && kind != ROCKETMQ {
            return None;
        }
        let text_at = texts.len();
        if let Some(last) = self.places.get(self.last) {
            for number in [last.next, self.last] {
                let place = self.places.get(number)?;
                if place.origin == origin
                    && let Some(found) = place.layout.cut(header, texts)
                {
                    self.places[self.last].next = number;
                    return Some((number, found));
                }
                texts.truncate(text_at);
            }
        } else if self.places.is_empty() {
            return None;
        }
        let found = key_and_varying(kind, header, &SENDS, texts);
        let found = match found {
            None if !self.endings.is_empty() => {
                texts.truncate(text_at);
                key_and_varying(kind, header, &ENDS, texts)
            }
            found => found,
        };
        let (mut key, found) = found?;
        key.extend_from_slice(&origin.to_ne_bytes());
        let number = *self.numbers.get(&key)?;
        if let Some(last) = self.places.get_mut(self.last) {
            last.next = number;
        }
        Some((number, found))
    }

    /// Takes a batch apart.
    fn take_entries(
        &mut self,
        data: &[u8],
        batch: Part,
        teaching: Teaching,
        born_ms: i64,
        run: &mut Run,
    ) -> Option<()> {
        let end = (batch.at + batch.bytes) as usize;
        let first = run.messages.len();
        let mut at = batch.at as usize;
        while at < end {
            if run.messages.len() - first >= MOST_IN_BATCH || end - at < ENTRY_BYTES + 2 {
                return None;
            }
            let flag = i32_at(data, at + 12);
            let body_bytes = usize::try_from(i32_at(data, at + 16)).ok()?;
            let body_at = at + ENTRY_BYTES;
            let text_at = body_at.checked_add(body_bytes)?.checked_add(2)?;
            if text_at > end {
                return None;
            }
            let text_bytes = usize::from(u16_at(data, text_at - 2));
            at = text_at + text_bytes;
            if at > end || text_bytes > MOST_PROPERTIES_BYTES {
                return None;
            }
            let text = &data[text_at..at];
            std::str::from_utf8(text).ok()?;
            let values = self.plain_in_batch.of(text)?;
            let code = tags_code(values.tags.of(text));
            let body = Part { at: body_at as u32, bytes: body_bytes as u32 };
            let text = Text::Sent(Part { at: text_at as u32, bytes: text_bytes as u32 });
            let teaching = Teaching { flag, ..teaching };
            let values = moved_values(values, text_at);
            run.messages.push(Message::new(teaching, born_ms, body, text, values, code));
        }
        Some(())
    }

    /// Counts the messages of a command, which is the last, for their queue.
    fn count(&mut self, run: &mut Run, first: usize, number: u32) {
        let queue = &mut self.queues[number as usize];
        if queue.seen.0 != self.runs {
            queue.seen = (self.runs, run.queues.len() as u32);
            run.queues.push(OfQueue { queue: number, messages: 0, bytes: 0 });
        }
        let besides = (FIXED_BYTES + queue.record_topic.len() + 2) as u64;
        let of_queue = &mut run.queues[queue.seen.1 as usize];
        for message in &mut run.messages[first..] {
            message.slot = queue.seen.1;
            let bytes = u64::from(message.body.bytes) + u64::from(message.text.part().bytes);
            run.most_bytes = run.most_bytes.max(bytes);
            of_queue.messages += 1;
            of_queue.bytes += besides + bytes;
            run.size_bytes += besides + bytes;
        }
    }
}

fn moved(part: Part, by: usize) -> Part {
    if part.is_there() { Part { at: part.at + by as u32, ..part } } else { part }
}

fn moved_values(values: Values, by: usize) -> Values {
    Values {
        uniq_key: moved(values.uniq_key, by),
        keys: moved(values.keys, by),
        tags: moved(values.tags, by),
        ..Values::default()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::header::tests::{binary, json};
    use crate::signature::tests::{KEY, signed_json};

    pub fn frame(kind: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
        let mut frame = ((4 + header.len() + body.len()) as u32).to_be_bytes().to_vec();
        frame.extend((u32::from(kind) << 24 | header.len() as u32).to_be_bytes());
        frame.extend(header);
        frame.extend(body);
        frame
    }

    pub fn entry(body: &[u8], text: &[u8]) -> Vec<u8> {
        let mut entry = vec![0; 12];
        entry.extend(9i32.to_be_bytes());
        entry.extend((body.len() as u32).to_be_bytes());
        entry.extend(body);
        entry.extend((text.len() as u16).to_be_bytes());
        entry.extend(text);
        entry
    }

    pub const TEXT: &str = "UNIQ_KEY\\u0001K1\\u0002WAIT\\u0001true";

    pub fn table() -> Table {
        let touched = ["DELAY", "TRAN_MSG"].map(|name| name.as_bytes().to_vec());
        let own = b"CLUSTER\x01c\x02".to_vec();
        let mut table = Table::new(touched.to_vec(), vec![], touched[..1].to_vec(), own);
        assert_eq!(table.add_queue(b"\x01T", MAGIC_V1, 0), Some(0));
        assert_eq!(table.add_queue(b"\x01U", MAGIC_V1, 3), Some(1));
        for (queue, topic) in [(0, "T"), (1, "U")] {
            assert!(table.learn(JSON, &json("1", "1", "x", topic), teaching(queue, false), 0, None));
        }
        assert!(table.learn(JSON, &json("1", "1", "x", "B"), teaching(0, true), 0, None));
        table
    }

    pub fn teaching(queue: u32, is_batch: bool) -> Teaching {
        let (oneway, flag, sys_flag, reconsume, code, half) = (false, 5, 0, 0, 310, None);
        Teaching { queue, is_batch, oneway, flag, sys_flag, reconsume, code, half }
    }

    #[test]
    fn whole_plain_sends_are_taken_from_the_beginning() {
        let mut table = table();
        let mut data = Vec::new();
        for (opaque, topic) in [("1", "T"), ("2", "U"), ("3", "T"), ("4", "U")] {
            data.extend(frame(JSON, &json(opaque, "17", TEXT, topic), b"body"));
        }
        for _ in 0..3 {
            let run = table.take(&data, 0).unwrap();
            assert_eq!((run.at, run.commands.len(), run.queues.len()), (data.len(), 4, 2));
            assert_eq!(run.opaques(), [1, 2, 3, 4]);
            assert_eq!(run.waits, Some(true));
        }
        let one = data.len() / 4;
        assert_eq!(table.take(&data[..2 * one + 9], 0).unwrap().at, 2 * one);
        assert!(table.take(&data[..one - 1], 0).is_none());
        assert!(table.take(&data[1..], 0).is_none());
        assert!(table.take(b"", 0).is_none());
    }

    #[test]
    fn fields_may_come_in_another_order_each_time() {
        let mut table = table();
        let usual = String::from_utf8(json("1", "17", TEXT, "T")).unwrap();
        let other = usual.replace("\"b\":\"T\",", "").replace("\"}", "\",\"b\":\"T\"}");
        assert_ne!(usual, other);
        let frames = [&usual, &other, &other, &usual].map(|text| frame(JSON, text.as_bytes(), b"x"));
        let run = table.take(&frames.concat(), 0).unwrap();
        assert_eq!((run.commands.len(), run.queues.len(), table.places.len()), (4, 1, 3));
        let wrong = other.replace("\"b\":\"T\"", "\"b\":\"V\"");
        assert!(table.take(&frame(JSON, wrong.as_bytes(), b"x"), 0).is_none());
        let fields = [("a", &b"P"[..]), ("b", b"T"), ("g", b"17"), ("i", b"UNIQ_KEY\x01k")];
        assert!(table.learn(ROCKETMQ, &binary(1, &fields), teaching(0, false), 0, None));
        let mut order = [0, 1, 2, 3];
        for _ in 0..4 {
            order.rotate_left(1);
            let sent = binary(1, &order.map(|number| fields[number]));
            assert!(table.take(&frame(ROCKETMQ, &sent, b"x"), 0).is_some());
        }
    }

    #[test]
    fn signed_sends_are_taken_from_where_they_are_allowed() {
        let mut table = table();
        let account = table.add_account(&KEY);
        assert_eq!((account, table.add_account(b"short")), (Some(0), None));
        let header = |body| signed_json("1", "17", TEXT, "T", body);
        let good = frame(JSON, &header(b"body"), b"body");
        for (origin, account) in [(0, None), (0, account), (7, None), (7, Some(1))] {
            assert!(!table.learn(JSON, &header(b""), teaching(0, false), origin, account));
        }
        assert!(!table.learn(JSON, &json("1", "17", TEXT, "T"), teaching(0, false), 7, account));
        assert!(table.learn(JSON, &header(b""), teaching(0, false), 7, account));
        let wrong = frame(JSON, &header(b"body"), b"bodY");
        let data = [good.clone(), good.clone(), wrong, good.clone()].concat();
        let run = table.take(&data, 7).unwrap();
        assert_eq!((run.at, run.messages.len(), run.queues[0].messages), (2 * good.len(), 2, 2));
        assert!(table.take(&data, 8).is_none() && table.take(&data, 0).is_none());
        let unsigned = frame(JSON, &json("1", "17", TEXT, "T"), b"body");
        assert!(table.take(&unsigned, 0).is_some() && table.take(&unsigned, 7).is_none());
        table.wipe();
        assert!(table.take(&data, 7).is_none() && table.take(&unsigned, 0).is_none());
        assert!(!table.learn(JSON, &header(b""), teaching(0, false), 7, account));
    }

    #[test]
    fn a_run_ends_before_what_is_not_plain() {
        let mut table = table();
        let good = frame(JSON, &json("1", "17", TEXT, "T"), b"body");
        for wrong in [
            frame(JSON, &json("1", "17", TEXT, "T"), b""),
            frame(JSON, &json("1", "17", "DELAY\\u00011", "T"), b"body"),
            frame(JSON, &json("1", "17", "TAGS\\u0001K1", "T"), b"body"),
            frame(JSON, &json("1", "17", "UNIQ_KEY\\u0001K-1", "T"), b"body"),
            frame(JSON, &json("1", "17", "UNIQ_KEY\\u0001K1\\u0002WAIT\\u0001no", "T"), b"body"),
            frame(JSON, &json("1", "17", TEXT, "new"), b"body"),
            frame(2, &json("1", "17", TEXT, "T"), b"body"),
            frame(JSON, &json("1", "17", &format!("UNIQ_KEY\\u0001{}", "k".repeat(0x7ff0)), "T"), b"b"),
        ] {
            let run = table.take(&[good.clone(), wrong.clone(), good.clone()].concat(), 0).unwrap();
            assert_eq!((run.at, run.messages.len()), (good.len(), 1));
            assert_eq!(run.texts.len(), b"UNIQ_KEY\x01K1\x02WAIT\x01true\x02CLUSTER\x01c\x02".len());
        }
    }

    #[test]
    fn half_messages_wait_with_what_says_where_they_are_to_go() {
        let mut table = table();
        assert_eq!(table.add_half(9, b"ID\x01", b"\x02TO\x01T\x02"), Some(0));
        let half = |number, is_batch| Teaching { half: Some(number), ..teaching(1, is_batch) };
        let header = json("1", "1", "x", "half");
        assert!(!table.learn(JSON, &header, half(1, false), 0, None));
        assert!(!table.learn(JSON, &header, half(0, true), 0, None));
        assert!(table.learn(JSON, &header, half(0, false), 0, None));
        let of = |text, topic| frame(JSON, &json("1", "17", text, topic), b"body");
        let text = "UNIQ_KEY\\u0001K1\\u0002TRAN_MSG\\u0001true";
        let run = table.take(&[of(text, "half"), of(TEXT, "U")].concat(), 0).unwrap();
        assert_eq!((run.commands.len(), run.queues.len(), run.halves()), (2, 1, vec![(0, 1)]));
        assert_eq!((run.commands[0].queue_id, run.commands[1].queue_id), (9, 3));
        let stored = b"UNIQ_KEY\x01K1\x02TRAN_MSG\x01true\x02ID\x01K1\x02TO\x01T\x02CLUSTER\x01c\x02";
        assert_eq!(run.messages[0].text.part().of(&run.texts), stored);
        for (text, topic) in [(text, "T"), (TEXT, "half"), (&text.replace("true", "no"), "half")] {
            assert!(table.take(&of(text, topic), 0).is_none());
        }
    }

    #[test]
    fn batches_are_taken_apart() {
        let mut table = table();
        let body = [entry(b"one", b"TAGS\x01a\x02"), entry(b"", b"")].concat();
        let data = frame(JSON, &json("1", "17", "WAIT\\u0001true", "B"), &body);
        let run = table.take(&data, 0).unwrap();
        assert_eq!((run.messages.len(), run.commands[0].count), (2, 2));
        assert!(!run.commands[0].key.is_there());
        for end in 0..body.len() {
            let cut = frame(JSON, &json("1", "17", "", "B"), &body[..end]);
            assert_eq!(table.take(&cut, 0).is_some(), end == entry(b"one", b"TAGS\x01a\x02").len());
        }
        let long = frame(JSON, &json("1", "17", "", "B"), &entry(b"x", b"").repeat(513));
        assert!(table.take(&long, 0).is_none());
        let many = frame(JSON, &json("1", "17", "", "B"), &entry(b"x", b"").repeat(512)).repeat(3);
        assert_eq!(table.take(&many, 0).unwrap().messages.len(), 1024);
    }

    #[test]
    fn places_are_bounded_and_binary_headers_are_learned() {
        let mut table = table();
        for number in 0..MOST_PLACES + 10 {
            let topic = format!("n{number}");
            let header = binary(1, &[("b", topic.as_bytes()), ("g", b"1"), ("i", b"x")]);
            assert!(table.learn(ROCKETMQ, &header, teaching(1, false), 0, None));
            assert!(table.places.len() <= MOST_PLACES && table.numbers.len() <= MOST_PLACES);
            let sent = binary(7, &[("b", topic.as_bytes()), ("g", b"2"), ("i", b"UNIQ_KEY\x01k")]);
            assert_eq!(table.take(&frame(ROCKETMQ, &sent, b"x"), 0).unwrap().opaques(), [7]);
        }
        assert!(!table.learn(JSON, b"{}", teaching(0, false), 0, None));
        assert!(!table.learn(JSON, &json("1", "1", "", "T"), teaching(2, false), 0, None));
        assert_eq!(table.add_queue(b"\x02T", MAGIC_V1, 0), None);
        assert_eq!(table.add_queue(b"", MAGIC_V1, 0), None);
        assert_eq!(table.add_queue(b"\x00\x01T", MAGIC_V2, 0), Some(2));
    }
}
