// SPDX-License-Identifier: Apache-2.0
//! Walks through the records of a file of the log, by the rules of the walk in Python.

use crate::bytes::{i32_at, i64_at, u16_at, u32_at};
use crate::hash::{continued, tags_code};
use crate::properties::PlainProperties;
use crate::rows::Rows;
use crate::run::PackedUnits;
use std::collections::HashMap;

pub const MAGIC_V1: i32 = -626_843_481;
pub const MAGIC_V2: i32 = -626_843_477;
pub const FIXED_BYTES: usize = 88;
const IPV6_MORE_BYTES: usize = 12;
const BORN_HOST_V6: i32 = 1 << 4;
const STORE_HOST_V6: i32 = 1 << 5;
const STORE_TIMESTAMP_AT: usize = 56;
const BODY_LENGTH_AT: usize = 84;
const PAGE_BYTES: usize = 4096;
const MOST_RECORDS: usize = 16_384;
const MOST_FOLLOWED: usize = 1024;
/// Flags of records that have no unit, or more than one: half and rolled back messages, and batches.
const NOT_ONE_UNIT: i32 = 1 << 2 | 1 << 7;

/// Names of properties that make more of a record than a unit with the hash of its tag.
const NOT_PLAIN: [&[u8]; 4] =
    [b"DELAY", b"INNER_MULTI_DISPATCH", b"INNER_MULTI_QUEUE_OFFSET", b"INNER_NUM"];

/// A sound record: where its parts are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub size: i32,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub sys_flag: i32,
    pub stored_ms: i64,
    pub topic_at: usize,
    pub properties_at: usize,
    pub end: usize,
}

/// The sound record at this position; `None` if there is none.
pub fn record_at(view: &[u8], from_offset: i64, position: usize, check_crc: bool) -> Option<Found> {
    if position.checked_add(FIXED_BYTES)? > view.len() {
        return None;
    }
    let head = &view[position..position + FIXED_BYTES];
    let (size, magic, sys_flag) = (i32_at(head, 0), i32_at(head, 4), i32_at(head, 36));
    let mut more = 0;
    let mut store_timestamp_at = STORE_TIMESTAMP_AT;
    if sys_flag & BORN_HOST_V6 != 0 {
        more += IPV6_MORE_BYTES;
        store_timestamp_at += IPV6_MORE_BYTES;
    }
    if sys_flag & STORE_HOST_V6 != 0 {
        more += IPV6_MORE_BYTES;
    }
    let length_bytes = match magic {
        MAGIC_V1 => 1,
        MAGIC_V2 => 2,
        _ => return None,
    };
    let body_at = position + FIXED_BYTES + more;
    if body_at > view.len() || i64_at(head, 28) != from_offset.checked_add(position as i64)? {
        return None;
    }
    let stored_ms = i64_at(view, position + store_timestamp_at);
    let body_bytes = usize::try_from(i32_at(view, position + BODY_LENGTH_AT + more)).ok()?;
    let end = position + usize::try_from(size).ok()?;
    let body_end = body_at + body_bytes;
    let topic_at = body_end + length_bytes;
    if end > view.len() || topic_at > end {
        return None;
    }
    let topic_bytes = match length_bytes {
        1 => usize::from(view[body_end]),
        _ => usize::from(u16_at(view, body_end)),
    };
    let properties_at = topic_at + topic_bytes + 2;
    if properties_at > end || properties_at + usize::from(u16_at(view, properties_at - 2)) != end {
        return None;
    }
    if check_crc
        && (body_bytes > 0 && crc32fast::hash(&view[body_at..body_end]) & 0x7fff_ffff != u32_at(head, 8)
            || is_torn(view, topic_at, properties_at, end))
    {
        return None;
    }
    Some(Found {
        size,
        queue_id: i32_at(head, 12),
        queue_offset: i64_at(head, 20),
        sys_flag,
        stored_ms,
        topic_at,
        properties_at,
        end,
    })
}

/// Whether a page in this part is all zeros: a power cut came before it was written.
fn is_torn(view: &[u8], start: usize, properties_at: usize, end: usize) -> bool {
    let end = if properties_at == end { end - 2 } else { end };
    (start.next_multiple_of(PAGE_BYTES)..end)
        .step_by(PAGE_BYTES)
        .any(|at| view[at..end.min(at + PAGE_BYTES)].iter().all(|byte| *byte == 0))
}

/// The result of a walk: where the next record would start, and rows for those that were found.
#[derive(Debug, Default, PartialEq)]
pub struct Walked {
    pub position: usize,
    pub count: usize,
    pub rows: Vec<u8>,
}

/// Walks from a position to the first that has no sound record before `end`.
pub fn walk(view: &[u8], from_offset: i64, start: usize, end: usize, check_crc: bool) -> Walked {
    let view = &view[..end.min(view.len())];
    let mut plain = PlainProperties::new(NOT_PLAIN.map(<[u8]>::to_vec));
    let mut done = Walked { position: start, ..Walked::default() };
    while done.count < MOST_RECORDS {
        let Some(found) = record_at(view, from_offset, done.position, check_crc) else { break };
        push_row(&mut done.rows, view, from_offset + done.position as i64, &found, &mut plain);
        done.position = found.end;
        done.count += 1;
    }
    done
}

fn push_row(rows: &mut Vec<u8>, view: &[u8], offset: i64, found: &Found, plain: &mut PlainProperties) {
    let text = &view[found.properties_at..found.end];
    let values = if std::str::from_utf8(text).is_ok() { plain.of(text) } else { None };
    let code = values.map_or(0, |values| tags_code(values.tags.of(text)));
    for long in [offset, found.queue_offset, found.stored_ms, code] {
        rows.extend_from_slice(&long.to_ne_bytes());
    }
    let topic_bytes = found.properties_at - 2 - found.topic_at;
    let is_plain = i32::from(values.is_some());
    for int in
        [found.size, found.queue_id, found.sys_flag, found.topic_at as i32, topic_bytes as i32, is_plain]
    {
        rows.extend_from_slice(&int.to_ne_bytes());
    }
}

/// Units of one queue that follow one another there.
#[derive(Debug, PartialEq)]
pub struct Units {
    pub topic: Vec<u8>,
    pub queue_id: i32,
    pub first: i64,
    pub units: PackedUnits,
    next: i64,
    keys_hash: u32,
}

/// What follows from records: up to where, from how many, and when the last of them was stored.
#[derive(Debug, Default, PartialEq)]
pub struct Followed {
    pub position: usize,
    pub count: usize,
    pub stored_ms: i64,
    pub units: Vec<Units>,
}

/// Finds what follows from the records from a position on, up to the first that is in any way
/// unusual, and no more than so many; rows are added for the index.
pub fn follow(
    view: &[u8],
    from_offset: i64,
    start: usize,
    end: usize,
    mut rows: Option<&mut Rows>,
) -> Followed {
    let view = &view[..end.min(view.len())];
    let mut plain = PlainProperties::new(NOT_PLAIN.map(<[u8]>::to_vec));
    let mut done = Followed { position: start, ..Followed::default() };
    let mut latest: HashMap<(&[u8], i32), usize> = HashMap::new();
    while done.count < MOST_FOLLOWED {
        let Some(found) = record_at(view, from_offset, done.position, false) else { break };
        let text = &view[found.properties_at..found.end];
        let topic = &view[found.topic_at..found.properties_at - 2];
        if found.sys_flag & NOT_ONE_UNIT != 0
            || std::str::from_utf8(text).is_err()
            || std::str::from_utf8(topic).is_err()
        {
            break;
        }
        let Some(values) = plain.of(text) else { break };
        let place = (topic, found.queue_id);
        let number = match latest.get(&place) {
            Some(number) if done.units[*number].next == found.queue_offset => *number,
            _ => {
                done.units.push(Units {
                    topic: topic.to_vec(),
                    queue_id: found.queue_id,
                    first: found.queue_offset,
                    units: PackedUnits::new(0),
                    next: found.queue_offset,
                    keys_hash: continued(continued(0, topic), b"#"),
                });
                latest.insert(place, done.units.len() - 1);
                done.units.len() - 1
            }
        };
        let units = &mut done.units[number];
        let Some(next) = units.next.checked_add(1) else { break };
        units.next = next;
        let offset = from_offset + done.position as i64;
        units.units.push(offset, found.size, tags_code(values.tags.of(text)));
        if let Some(rows) = rows.as_deref_mut() {
            let hashes = (units.keys_hash, continued(units.keys_hash, b"T#"));
            let keys = (values.uniq_key.of(text), values.keys.of(text), values.tags.of(text));
            rows.add_message(hashes, keys, offset, found.stored_ms);
        }
        done.stored_ms = found.stored_ms;
        done.position = found.end;
        done.count += 1;
    }
    done.units.retain(|units| !units.units.packed.is_empty());
    done
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::bytes::Cursor;

    pub fn record(offset: i64, body: &[u8], topic: &[u8], properties: &[u8]) -> Vec<u8> {
        let size = FIXED_BYTES + body.len() + 1 + topic.len() + 2 + properties.len();
        let mut data = vec![0; size];
        let mut at = Cursor::new(&mut data, 0);
        for value in [size as i32, MAGIC_V1, (crc32fast::hash(body) & 0x7fff_ffff) as i32, 3, 0] {
            at.i32(value);
        }
        at.i64(7);
        at.i64(offset);
        at.i32(0);
        for value in [1, 2, 3, 4] {
            at.i64(value);
        }
        at.i32(0);
        at.i64(0);
        at.i32(body.len() as i32);
        at.bytes(body);
        at.bytes(&[topic.len() as u8]);
        at.bytes(topic);
        at.u16(properties.len() as u16);
        at.bytes(properties);
        data
    }

    #[test]
    fn a_walk_finds_records_up_to_the_first_that_is_not_sound() {
        let mut log = record(100, b"one", b"T", b"TAGS\x01a\x02");
        log.extend(record(100 + log.len() as i64, b"", b"Topic", b""));
        let end = log.len();
        log.extend([0; 200]);
        let done = walk(&log, 100, 0, usize::MAX, true);
        assert_eq!((done.position, done.count, done.rows.len()), (end, 2, 112));
        assert_eq!(walk(&log, 100, 0, end - 1, true).count, 1);
        assert_eq!(walk(&log, 101, 0, end, true).count, 0);
        assert_eq!(walk(&log, 100, end + 500, usize::MAX, true).count, 0);
        log[88] ^= 1;
        assert_eq!(walk(&log, 100, 0, end, true).count, 0);
        assert_eq!(walk(&log, 100, 0, end, false).count, 2);
    }

    #[test]
    fn units_that_follow_one_another_are_packed_together() {
        let mut log = Vec::new();
        for (topic, text) in [
            (&b"T"[..], &b"TAGS\x01TagA\x02UNIQ_KEY\x01k"[..]),
            (b"U", b""),
            (b"T", b""),
            (b"T", b"DELAY\x011"),
            (b"T", b""),
        ] {
            let next = record(log.len() as i64, b"x", topic, text);
            log.extend(next);
        }
        let third = record(0, b"x", b"T", b"TAGS\x01TagA\x02UNIQ_KEY\x01k").len()
            + record(0, b"x", b"U", b"").len();
        log[third + 20..third + 28].copy_from_slice(&8i64.to_be_bytes());
        let mut rows = Rows::default();
        let done = follow(&log, 0, 0, usize::MAX, Some(&mut rows));
        assert_eq!((done.count, done.stored_ms, rows.len()), (3, 3, 2));
        assert_eq!(done.units.len(), 2);
        let its = &done.units[0];
        assert_eq!(
            (&its.topic[..], its.queue_id, its.first, its.units.packed.len()),
            (&b"T"[..], 3, 7, 40)
        );
        assert_eq!(i64_at(&its.units.packed, 12), 2_598_919);
        let half = follow(&log, 0, done.position, usize::MAX, None);
        assert_eq!((half.count, half.units.len()), (0, 0));
    }

    #[test]
    fn no_damage_of_one_byte_leads_out_of_the_data() {
        let log = record(0, b"some body", b"Topic", b"TAGS\x01a\x02KEYS\x01b");
        for at in 0..log.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = log.clone();
                damaged[at] = value;
                let done = walk(&damaged, 0, 0, usize::MAX, true);
                assert!(done.position == 0 || done.position == log.len());
            }
        }
    }

    #[test]
    fn a_zeroed_page_is_torn() {
        let log = record(0, &[1; 4000], b"T", &[b'a'; 9000]);
        assert_eq!(walk(&log, 0, 0, usize::MAX, true).count, 1);
        let mut torn = log.clone();
        torn[4096..8192].fill(0);
        assert_eq!(walk(&torn, 0, 0, usize::MAX, true).count, 0);
        assert_eq!(walk(&torn, 0, 0, usize::MAX, false).count, 1);
    }
}
