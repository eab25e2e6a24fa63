// SPDX-License-Identifier: Apache-2.0
//! Rows of the index that wait to be written: 20 bytes each, not objects.

use crate::bytes::{Cursor, i32_at, i64_at};
use crate::hash::{continued, positive};
use std::collections::HashMap;
use std::sync::atomic::{Ordering, compiler_fence};

pub const MOST_WRITTEN: usize = 1024;
const HEADER_BYTES: usize = 40;
const SLOT_BYTES: usize = 4;
const ITEM_BYTES: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    hash: i32,
    offset: i64,
    stored_ms: i64,
}

/// What is indexed of a message: unique key, keys, and tag; those that are empty are not there.
pub type Keys<'a> = (&'a [u8], &'a [u8], &'a [u8]);

#[derive(Default)]
pub struct Rows {
    waiting: Vec<Row>,
    /// How many of the first were put already.
    put: usize,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.waiting.len() - self.put
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the rows of a message in the original's order: unique key, keys, tag. The hashes are
    /// those of its topic and "#", and of that and "T#".
    pub fn add_message(&mut self, hashes: (u32, u32), keys: Keys, offset: i64, stored_ms: i64) {
        let (uniq_key, words, tags) = keys;
        if !uniq_key.is_empty() {
            self.add(continued(hashes.0, uniq_key), offset, stored_ms);
        }
        for word in words.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
            self.add(continued(hashes.0, word), offset, stored_ms);
        }
        if !tags.is_empty() {
            self.add(continued(hashes.1, tags), offset, stored_ms);
        }
    }

    /// Adds one row for a text with this hash.
    pub fn add(&mut self, hash: u32, offset: i64, stored_ms: i64) {
        self.waiting.push(Row { hash: positive(hash), offset, stored_ms });
    }

    /// Adds the rows of others behind these.
    pub fn extend(&mut self, others: &Rows) {
        self.waiting.extend_from_slice(&others.waiting[others.put..]);
    }

    /// Writes the first rows into an index file: items, then its header, then slots, so that a
    /// process that is killed meanwhile leaves nothing that cannot be redone. Returns how many.
    pub fn put(
        &mut self,
        map: &mut [u8],
        slots: u32,
        items_at: usize,
        first: usize,
        begin_ms: i64,
    ) -> Result<usize, &'static str> {
        let slots_bytes = slots as usize * SLOT_BYTES;
        if slots == 0 || items_at != HEADER_BYTES + slots_bytes || items_at > map.len() || first == 0 {
            return Err("this is no place in an index file");
        }
        let items = ((map.len() - items_at) / ITEM_BYTES).min(i32::MAX as usize);
        let count = items.saturating_sub(first).min(self.len()).min(MOST_WRITTEN);
        if count == 0 {
            return Ok(0);
        }
        let rows = &self.waiting[self.put..self.put + count];
        let begin_ms = if begin_ms > 0 { begin_ms } else { rows[0].stored_ms };
        let mut newest: HashMap<usize, i32> = HashMap::with_capacity(count);
        let mut used_slots = 0;
        let mut packed = vec![0; count * ITEM_BYTES];
        let mut item = Cursor::new(&mut packed, 0);
        for (number, row) in (first as i32..).zip(rows) {
            let slot_at = HEADER_BYTES + row.hash as usize % slots as usize * SLOT_BYTES;
            let previous = newest.insert(slot_at, number).unwrap_or_else(|| {
                let newest = i32_at(map, slot_at);
                if (0..first as i32).contains(&newest) { newest } else { 0 }
            });
            used_slots += i32::from(previous == 0);
            let seconds = row.stored_ms.saturating_sub(begin_ms).div_euclid(1000);
            item.i32(row.hash);
            item.i64(row.offset);
            item.i32(seconds.clamp(0, i64::from(i32::MAX)) as i32);
            item.i32(previous);
        }
        let at = items_at + first * ITEM_BYTES;
        map[at..at + packed.len()].copy_from_slice(&packed);
        compiler_fence(Ordering::SeqCst);
        write_header(map, rows, first, used_slots);
        compiler_fence(Ordering::SeqCst);
        for (slot_at, number) in newest {
            map[slot_at..slot_at + SLOT_BYTES].copy_from_slice(&number.to_be_bytes());
        }
        self.put += count;
        if self.put * 2 > self.waiting.len() {
            self.waiting.drain(..self.put);
            self.put = 0;
        }
        Ok(count)
    }
}

fn write_header(map: &mut [u8], rows: &[Row], first: usize, used_slots: i32) {
    let last = rows[rows.len() - 1];
    let (begin_ms, begin_offset) = match first {
        1 => (rows[0].stored_ms, rows[0].offset),
        _ => (i64_at(map, 0), i64_at(map, 16)),
    };
    let used_slots = i32_at(map, 32).wrapping_add(used_slots);
    let mut to = Cursor::new(map, 0);
    to.i64(begin_ms);
    to.i64(last.stored_ms);
    to.i64(begin_offset);
    to.i64(last.offset);
    to.i32(used_slots);
    to.i32((first + rows.len()) as i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(slots: usize, items: usize) -> (Vec<u8>, usize) {
        let items_at = HEADER_BYTES + slots * SLOT_BYTES;
        (vec![0; items_at + items * ITEM_BYTES], items_at)
    }

    #[test]
    fn items_are_chained_by_their_slots() {
        let (mut map, items_at) = file(4, 10);
        let mut rows = Rows::default();
        for (hash, offset) in [(1, 100), (5, 200), (2, 300)] {
            rows.add(hash, offset, 5000 + offset);
        }
        assert_eq!(rows.put(&mut map, 4, items_at, 1, 0), Ok(3));
        assert!(rows.is_empty());
        let previous = |map: &[u8], number: usize| i32_at(map, items_at + number * ITEM_BYTES + 16);
        assert_eq!([1, 2, 3].map(|number| previous(&map, number)), [0, 1, 0]);
        assert_eq!([0, 1, 2, 3].map(|slot| i32_at(&map, HEADER_BYTES + slot * 4)), [0, 2, 3, 0]);
        assert_eq!((i64_at(&map, 0), i64_at(&map, 8)), (5100, 5300));
        assert_eq!((i64_at(&map, 16), i64_at(&map, 24)), (100, 300));
        assert_eq!((i32_at(&map, 32), i32_at(&map, 36)), (2, 4));
        map[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&9i32.to_be_bytes());
        rows.add(1, 400, 9000);
        rows.add(4, 500, 1);
        assert_eq!(rows.put(&mut map, 4, items_at, 4, 5100), Ok(2));
        assert_eq!([4, 5].map(|number| previous(&map, number)), [2, 0]);
        assert_eq!([4, 5].map(|number| i32_at(&map, items_at + number * ITEM_BYTES + 12)), [3, 0]);
    }

    #[test]
    fn no_more_is_put_than_there_is_room_for() {
        let (mut map, items_at) = file(4, 10);
        let mut rows = Rows::default();
        for offset in 0..5000 {
            rows.add(0x8000_0000, offset, 1);
        }
        assert_eq!(rows.put(&mut map, 4, items_at, 1, 0), Ok(9));
        assert_eq!(rows.put(&mut map, 4, items_at, 10, 0), Ok(0));
        for (slots, at, first) in
            [(0, 40, 1), (4, items_at + 1, 1), (4, items_at, 0), (u32::MAX, items_at, 1)]
        {
            assert!(rows.put(&mut map, slots, at, first, 0).is_err());
        }
        let (mut large, items_at) = file(4, 5000);
        let mut first = 1;
        while !rows.is_empty() {
            first += rows.put(&mut large, 4, items_at, first, 0).unwrap();
        }
        assert_eq!((first, rows.waiting.len()), (4992, 0));
        assert_eq!(i64_at(&large, 24), 4999);
    }

    #[test]
    fn a_message_has_a_row_for_each_key() {
        let mut rows = Rows::default();
        rows.add_message((0, 1), (b"u", b" a  b ", b"t"), 7, 8);
        rows.add_message((0, 1), (b"", b"", b""), 7, 8);
        let hashes: Vec<i32> = rows.waiting.iter().map(|row| row.hash).collect();
        assert_eq!(hashes, [117, 97, 98, 31 + 116]);
    }
}
