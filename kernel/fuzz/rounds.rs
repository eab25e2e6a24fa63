// SPDX-License-Identifier: Apache-2.0
//! Feeds the kernel with frames and logs that were changed, and holds that nothing panics, that no
//! more is taken than there is, and that each record that is written is found by a walk over it.
//!
//! `examples/fuzz.rs` draws the changes at random; the targets beside this file are for cargo-fuzz,
//! which draws them by what they reach.

use txrocketmq_kernel::answers::Pieces;
use txrocketmq_kernel::ends::{self, Ending};
use txrocketmq_kernel::header::{ENDS, JSON, Layout, PULLS, ROCKETMQ, SENDS, key_of};
use txrocketmq_kernel::pulls::{self, Log, Pulls, place};
use txrocketmq_kernel::record::{MAGIC_V1, follow, walk};
use txrocketmq_kernel::rows::Rows;
use txrocketmq_kernel::run::Target;
use txrocketmq_kernel::table::{Table, Teaching};

pub mod signers;

/// A source of chance: first the bytes of an input, then xorshift. Both can be repeated.
pub struct Chance<'a> {
    input: &'a [u8],
    state: u64,
}

impl<'a> Chance<'a> {
    pub fn new(input: &'a [u8], seed: u64) -> Chance<'a> {
        Chance { input, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    pub fn below(&mut self, most: usize) -> usize {
        let most = most.max(1);
        let bytes = if most > 256 { 4 } else { 1 };
        if let Some((begin, rest)) = self.input.split_at_checked(bytes) {
            self.input = rest;
            return begin.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)) % most;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % most as u64) as usize
    }

    fn of<'b>(&mut self, texts: &[&'b [u8]]) -> &'b [u8] {
        texts[self.below(texts.len())]
    }

    fn change(&mut self, data: &mut Vec<u8>) {
        for _ in 0..self.below(4) {
            if data.is_empty() {
                return;
            }
            let at = self.below(data.len());
            match self.below(5) {
                0 => data[at] = self.below(256) as u8,
                1 => data[at] ^= 1 << self.below(8),
                2 => drop(data.drain(at..(at + self.below(9)).min(data.len()))),
                3 => {
                    let some =
                        self.of(&[b"\"", b"\\", b"\\u0002", b"\x01", b"}", b",\"g\":\"1\"", b"\xff\xff"]);
                    data.splice(at..at, some.iter().copied());
                }
                _ => data.truncate(at),
            }
        }
    }
}

const TEXTS: [&[u8]; 9] = [
    b"UNIQ_KEY\x01K1\x02WAIT\x01true\x02",
    b"UNIQ_KEY\x01K1\x02TAGS\x01a\x02KEYS\x01b c",
    b"UNIQ_KEY\x01K1\x02DELAY\x013\x02",
    b"",
    b"TAGS\x01\xc3\xa9\x02UNIQ_KEY\x01K2",
    b"a\x01b\x02a\x01c\x02UNIQ_KEY\x01K",
    b"WAIT\x01false\x02UNIQ_KEY\x010A0B",
    b"UNIQ_KEY\x01K3\x02TRAN_MSG\x01true\x02PGROUP\x01g",
    b"TRAN_MSG\x01TRUE\x02UNIQ_KEY\x01K4\x02WAIT\x01true\x02",
];

fn json(chance: &mut Chance, topic: &str) -> Vec<u8> {
    let text =
        String::from_utf8_lossy(chance.of(&TEXTS)).replace('\x01', "\\u0001").replace('\x02', "\\u0002");
    format!(
        "{{\"code\":310,\"extFields\":{{\"a\":\"P\",\"b\":\"{topic}\",\"g\":\"{}\",\"i\":\"{text}\"}},\
         \"flag\":0,\"language\":\"JAVA\",\"opaque\":{},\"version\":401}}",
        chance.below(1 << 40),
        chance.below(1 << 31)
    )
    .into_bytes()
}

fn binary(chance: &mut Chance, topic: &str) -> Vec<u8> {
    let born = chance.below(1 << 40).to_string();
    let text = chance.of(&TEXTS);
    packed_header(chance, 310, &[(b"b", topic.as_bytes()), (b"g", born.as_bytes()), (b"i", text)])
}

/// A binary header of a code, with these fields.
fn packed_header(chance: &mut Chance, code: u16, given: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut fields = Vec::new();
    for (name, value) in given {
        fields.extend((name.len() as u16).to_be_bytes());
        fields.extend(*name);
        fields.extend((value.len() as u32).to_be_bytes());
        fields.extend(*value);
    }
    let mut header = code.to_be_bytes().to_vec();
    header.extend([0, 1, 145]);
    header.extend((chance.below(1 << 31) as u32).to_be_bytes());
    header.extend([0; 8]);
    header.extend((fields.len() as u32).to_be_bytes());
    header.extend(fields);
    header
}

fn body(chance: &mut Chance, topic: &str) -> Vec<u8> {
    if topic != "batch" {
        return vec![7; chance.below(300)];
    }
    let mut body = Vec::new();
    for _ in 0..chance.below(5) {
        let (bytes, text) = (chance.below(40), chance.of(&TEXTS));
        body.extend([0; 16]);
        body.extend((bytes as u32).to_be_bytes());
        body.resize(body.len() + bytes, 5);
        body.extend((text.len() as u16).to_be_bytes());
        body.extend(text);
    }
    body
}

/// The header of the end of a transaction whose half message is one of these, or of none.
fn end_header(chance: &mut Chance, kind: u8, halves: &[(i64, i64)]) -> Vec<u8> {
    let some = halves.get(chance.below(halves.len() + 1)).copied().unwrap_or((3, 77));
    let (place, offset) = (some.0.to_string(), some.1.to_string());
    let how = chance.of(&[b"8", b"8", b"12"]);
    let fields = [
        (&b"producerGroup"[..], &b"g"[..]),
        (b"tranStateTableOffset", place.as_bytes()),
        (b"commitLogOffset", offset.as_bytes()),
        (b"commitOrRollback", how),
        (b"msgId", chance.of(&[b"A1", b"B2C3", b"-"])),
    ];
    if kind == ROCKETMQ {
        return packed_header(chance, 37, &fields);
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let members: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{}\":\"{}\"", text(name), text(value))).collect();
    let (members, opaque) = (members.join(","), chance.below(1 << 31));
    format!("{{\"code\":37,\"extFields\":{{{members}}},\"flag\":2,\"opaque\":{opaque}}}").into_bytes()
}

/// Has the table learn the end that has this header, as far as its own fields say what it is.
fn learn_end(table: &mut Table, kind: u8, header: &[u8]) {
    let is_commit = !header.windows(2).any(|two| two == b"12");
    let ending = Ending { group: b"g"[..].into(), is_commit, oneway: true, code: 37 };
    table.learn_end(kind, header, ending);
}

fn frames(chance: &mut Chance, halves: &[(i64, i64)]) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..1 + chance.below(6) {
        let topic = ["T", "U", "batch", "half", "half", "unknown", "end", "end", "end"][chance.below(9)];
        let kind = [JSON, ROCKETMQ][chance.below(2)];
        let mut header = match (topic, kind) {
            ("end", _) => end_header(chance, kind, halves),
            (_, JSON) => json(chance, topic),
            _ => binary(chance, topic),
        };
        let mut body = if topic == "end" { Vec::new() } else { body(chance, topic) };
        if chance.below(3) == 0 {
            chance.change(&mut header);
        }
        if chance.below(3) == 0 {
            chance.change(&mut body);
        }
        data.extend(((4 + header.len() + body.len()) as u32).to_be_bytes());
        data.extend((u32::from(kind) << 24 | header.len() as u32).to_be_bytes());
        data.extend(header);
        data.extend(body);
    }
    if chance.below(3) == 0 {
        chance.change(&mut data);
    }
    data
}

/// What was seen: reads, requests that were taken, and records that were written.
#[derive(Default)]
pub struct Seen {
    pub reads: u64,
    pub taken: u64,
    pub written: u64,
    /// Pulls that were taken, and records that were found for such.
    pub pulls: u64,
    pub placed: u64,
    /// Signed requests that were taken, and how many of them were pulls.
    pub signed: u64,
    pub signed_pulls: u64,
    /// Half messages that were ended.
    pub ended: u64,
}

fn new_table() -> Table {
    let touched = [b"DELAY".to_vec(), b"TRAN_MSG".to_vec()];
    let (batch, half, own) = (touched[..1].to_vec(), touched[..1].to_vec(), b"o\x01p\x02".to_vec());
    let mut table = Table::new(touched.to_vec(), batch, half, own);
    for (topic, queue) in [(&b"\x01T"[..], 0), (b"\x01U", 1), (b"\x05batch", 2), (b"\x04half", 3)] {
        table.add_queue(topic, MAGIC_V1, queue).expect("a topic");
    }
    table.add_half(5, b"id\x01", b"\x02REAL_TOPIC\x01T\x02REAL_QID\x010\x02").expect("a number");
    table.expect_ends(b"\x04half", touched[..1].to_vec());
    table.add_target(0, b"REAL_TOPIC\x01T\x02REAL_QID\x010", 0).expect("a number");
    table
}

fn teaching(number: usize, oneway: bool) -> Teaching {
    Teaching {
        queue: number as u32,
        is_batch: number == 2,
        oneway,
        flag: 0,
        sys_flag: 0,
        reconsume: 0,
        code: 310,
        half: (number == 3).then_some(0),
    }
}

/// So many reads by one table into one log, which is then damaged and walked over.
pub fn sends(chance: &mut Chance, reads: usize, seen: &mut Seen) {
    let mut table = new_table();
    let mut log = Vec::new();
    let mut nexts = [0i64; 4];
    let mut units = Vec::new();
    let mut signers = signers::Signers::new();
    let mut halves = Vec::new();
    for _ in 0..reads {
        seen.reads += 1;
        let data = frames(chance, &halves);
        if chance.below(3) == 0 {
            let kind = [JSON, ROCKETMQ][chance.below(2)];
            let mut header = end_header(chance, kind, &halves);
            if chance.below(4) == 0 {
                chance.change(&mut header);
            }
            learn_end(&mut table, kind, &header);
        }
        if chance.below(8) == 0 {
            let mut damaged = log.clone();
            chance.change(&mut damaged);
            let log = ends::Log { view: &damaged, from_offset: 0, least: 0 };
            table.take_with(&data, 0, Some(&log));
        }
        if chance.below(2) == 0 {
            let number = chance.below(4);
            let topic = ["T", "U", "batch", "half"][number];
            let mut header = if chance.below(2) == 0 { json(chance, topic) } else { binary(chance, topic) };
            if chance.below(4) == 0 {
                chance.change(&mut header);
            }
            let teaching = teaching(number, chance.below(3) == 0);
            for kind in [JSON, ROCKETMQ] {
                table.learn(kind, &header, teaching, 0, None);
            }
        }
        if let Some(written) = write(&mut table, &data, &mut log, &mut nexts, &mut halves, seen) {
            units = written;
        }
        pulled(chance, &log, &units, seen);
        for _ in 0..6 {
            signers.step(chance, seen);
        }
    }
    chance.change(&mut log);
    pulled(chance, &log, &units, seen);
    let start = chance.below(log.len() + 9);
    logs(&log, start);
}

/// Bytes as they are: as a header that is learned, as reads, and as a log.
#[allow(dead_code)]
pub fn raw(data: &[u8]) {
    let mut table = new_table();
    for kind in [JSON, ROCKETMQ] {
        let is_known = Layout::of(kind, data, &SENDS).is_some_and(|layout| !layout.is_signed())
            && key_of(kind, data, &SENDS).is_some();
        assert_eq!(table.learn(kind, data, teaching(0, false), 0, None), is_known);
        let is_signed = Layout::of(kind, data, &SENDS).is_some_and(|layout| layout.is_signed());
        let mut of_account = new_table();
        let account = of_account.add_account(&KEY);
        assert!(!of_account.learn(kind, data, teaching(0, false), 1, account) || is_signed);
        if is_known {
            let mut frame = ((4 + data.len() + 1) as u32).to_be_bytes().to_vec();
            frame.extend((u32::from(kind) << 24 | data.len() as u32).to_be_bytes());
            frame.extend(data);
            frame.push(b'x');
            write(&mut table, &frame, &mut Vec::new(), &mut [0; 4], &mut Vec::new(), &mut Seen::default());
        }
        let ending = Ending { group: b"g"[..].into(), is_commit: true, oneway: true, code: 37 };
        let is_end = Layout::of(kind, data, &ENDS).is_some_and(|layout| !layout.is_signed());
        assert!(!new_table().learn_end(kind, data, ending) || is_end);
    }
    write(&mut table, data, &mut Vec::new(), &mut [0; 4], &mut Vec::new(), &mut Seen::default());
    for kind in [JSON, ROCKETMQ] {
        let is_known = Layout::of(kind, data, &PULLS).is_some_and(|layout| !layout.is_signed())
            && key_of(kind, data, &PULLS).is_some();
        assert_eq!(Pulls::default().learn(kind, data, 0, None).is_some(), is_known);
    }
    pulled(&mut Chance::new(data, 1), data, data, &mut Seen::default());
    logs(data, 0);
}

/// Returns the units of the last queue that has got some.
fn write(
    table: &mut Table,
    data: &[u8],
    log: &mut Vec<u8>,
    nexts: &mut [i64; 4],
    halves: &mut Vec<(i64, i64)>,
    seen: &mut Seen,
) -> Option<Vec<u8>> {
    let pieces = [&b"{"[..]; 6];
    let pieces = Pieces::of(&pieces, &pieces[..5]).expect("six and five");
    let last_file = ends::Log { view: log, from_offset: 0, least: 0 };
    let mut run = table.take_with(data, 0, Some(&last_file))?;
    assert!(run.half_bytes <= ends::MOST_HALF_BYTES);
    for ended in &run.ended {
        assert!(halves.iter().any(|half| half.0 == ended.queue_offset));
        seen.ended += 1;
    }
    if run.messages.is_empty() {
        return None;
    }
    assert!(run.at <= data.len() && run.size_bytes < 1 << 20);
    seen.taken += run.commands.len() as u64;
    let count: usize = run.halves().iter().map(|half| half.1).sum();
    assert!(count <= run.commands.len());
    let at = log.len();
    log.resize(at + run.size_bytes as usize, 0);
    let target = Target { at, offset: at as i64, now_ms: 1, born: [1; 8], host: [2; 8] };
    let mut rows = Rows::default();
    let its: Vec<i64> = run.queues.iter().map(|queue| nexts[queue.queue as usize]).collect();
    for queue in &run.queues {
        nexts[queue.queue as usize] += i64::from(queue.messages);
    }
    let units = run.write(table, data, log, &target, &its, Some(&mut rows)).expect("room");
    assert_eq!(units.iter().map(|its| its.packed.len()).sum::<usize>(), 20 * run.messages.len());
    assert_eq!(units.iter().map(|its| its.end_offset).max(), Some(log.len() as i64));
    run.answers(&pieces, b"host").expect("written");
    for command in run.commands.iter().filter(|command| command.half.is_some()) {
        let message = &run.messages[command.first as usize];
        halves.push((message.queue_offset, message.offset));
    }
    let done = walk(log, 0, at, usize::MAX, true);
    assert_eq!((done.position, done.count), (log.len(), run.messages.len()));
    seen.written += done.count as u64;
    let mut index = vec![0; 40 + 4 * 8 + 20 * 64];
    rows.put(&mut index, 8, 72, 1, 0).expect("an index");
    units.last().map(|its| its.packed.clone())
}

const KEY: [u8; 64] = [b'k'; 64];
fn framed(kind: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut data = ((4 + header.len() + body.len()) as u32).to_be_bytes().to_vec();
    data.extend((u32::from(kind) << 24 | header.len() as u32).to_be_bytes());
    data.extend(header);
    data.extend(body);
    data
}

fn pull(chance: &mut Chance) -> Vec<u8> {
    let fields = [("queueOffset", chance.below(1 << 40)), ("commitOffset", chance.below(1 << 30))];
    let [(first, one), (second, other)] = fields;
    let opaque = chance.below(1 << 31);
    format!(
        "{{\"code\":11,\"extFields\":{{\"topic\":\"T{}\",\"{first}\":\"{one}\",\"{second}\":\"{other}\"}},\
         \"opaque\":{opaque}}}",
        chance.below(3)
    )
    .into_bytes()
}

/// Pulls of some queues, and answers to them from a log that may be damaged.
fn pulled(chance: &mut Chance, log: &[u8], packed: &[u8], seen: &mut Seen) {
    let mut pulls = Pulls::default();
    for _ in 0..4 {
        let mut header = pull(chance);
        if chance.below(3) == 0 {
            chance.change(&mut header);
        }
        if chance.below(2) == 0 {
            pulls.learn(JSON, &header, 0, None);
        }
        let mut data = ((4 + header.len()) as u32).to_be_bytes().to_vec();
        data.extend((header.len() as u32).to_be_bytes());
        data.extend(header);
        if let Some(taken) = pulls.take(&data, 0, 0) {
            assert!(taken.end == data.len() && taken.opaque >= 0 && taken.queue_offset >= 0);
            seen.pulls += 1;
        }
    }
    let mut units = packed.to_vec();
    if chance.below(2) == 0 {
        chance.change(&mut units);
    }
    let (most, most_bytes) = (chance.below(9), chance.below(2000));
    let log = Log { view: log, from_offset: 0, magic: MAGIC_V1, least: 0 };
    let Some(found) = place(&units, &log, most, most_bytes) else { return };
    let bytes: usize = found.places.iter().map(|(begin, end)| log.view[*begin..*end].len()).sum();
    assert!(found.count > 0 && found.count <= units.len() / 20 && bytes == found.size_bytes);
    let pieces = pulls::Pieces::of(&[&b"{"[..]; 5]).expect("five");
    let head = pieces.head(7, [1, 2, 3], bytes).expect("short");
    assert_eq!(u32::from_be_bytes(head[..4].try_into().unwrap()) as usize, head.len() - 4 + bytes);
    seen.placed += found.count as u64;
}

fn logs(log: &[u8], start: usize) {
    walk(log, 0, start, usize::MAX, true);
    follow(log, 0, start, usize::MAX, Some(&mut Rows::default()));
    let done = follow(log, 0, 0, usize::MAX, None);
    assert!(done.position <= log.len());
}
