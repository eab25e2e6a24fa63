// SPDX-License-Identifier: Apache-2.0
//! Pulls: their headers, the records that the units of a queue name, and the head of the answer.

use crate::bytes::{i32_at, i64_at, push_decimal, u32_at};
use crate::header::{JSON, Layout, PULLS, ROCKETMQ, Varying, key_and_varying, key_of};
use crate::lasts::Lasts;
use crate::signature::{Accounts, Signed};
use std::collections::HashMap;

pub const MOST_PLACES: usize = 4096;
/// Records that lie in several places are copied if they have no more bytes than this together: to
/// write many small ones takes longer.
pub const MOST_COPIED_BYTES: usize = 64 * 1024;
/// Those that lie in one place are copied only if they are as few as this.
pub const COPIED_BYTES: usize = 4 * 1024;
const PREFIX_BYTES: usize = 8;
const MOST_FRAME_BYTES: usize = 16 * 1024 * 1024 - 4;
const UNIT_BYTES: usize = 20;
/// How many bytes the head of a record has, with its own offset at the end.
const HEAD_BYTES: usize = 36;
const OFFSET_AT: usize = 28;

struct Place {
    layout: Layout,
    /// From where such pulls are allowed, and what is signed of them; 0 and `None` if nobody has to
    /// sign.
    origin: u64,
    signed: Option<Signed>,
    /// The place of the pull that came next the last time.
    next: usize,
}

/// The headers of pulls that were learned.
#[derive(Default)]
pub struct Pulls {
    places: Vec<Place>,
    numbers: HashMap<Vec<u8>, usize>,
    accounts: Accounts,
    /// The place of the pull that came last from each origin.
    lasts: Lasts,
}

/// A pull with which the bytes of a read begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    pub place: usize,
    /// Where it ends.
    pub end: usize,
    pub opaque: i32,
    pub queue_offset: i64,
    pub commit_offset: i64,
}

impl Pulls {
    /// Adds an account by its secret as HMAC uses it; returns its number.
    pub fn add_account(&mut self, key: &[u8]) -> Option<u32> {
        self.accounts.add(key)
    }

    /// Forgets all places and accounts. Their secrets are overwritten.
    pub fn wipe(&mut self) {
        self.places.clear();
        self.numbers.clear();
        self.lasts.clear();
        self.accounts.wipe();
    }

    /// Learns headers like this one, which was decoded and checked; returns their number, which is
    /// the next one unless they are known, or `None` if they cannot be told from others, or if
    /// there are enough. Those of an account are taken from the same origin only, which is not 0.
    pub fn learn(&mut self, kind: u8, header: &[u8], origin: u64, account: Option<u32>) -> Option<usize> {
        let (layout, mut key) = (Layout::of(kind, header, &PULLS)?, key_of(kind, header, &PULLS)?);
        let signed = Signed::by(&layout, kind, header, &PULLS, &self.accounts, (origin, account))?;
        key.extend_from_slice(&origin.to_ne_bytes());
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = self.places.len();
        if number >= MOST_PLACES {
            return None;
        }
        self.places.push(Place { layout, origin, signed, next: number });
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Takes the pull from an origin that begins at a place; `None` if that is none that was learned,
    /// or if it is not signed as it should be.
    pub fn take(&mut self, data: &[u8], at: usize, origin: u64) -> Option<Taken> {
        let rest = data.get(at..)?;
        if rest.len() < PREFIX_BYTES {
            return None;
        }
        let (length, mark) = (u32_at(rest, 0) as usize, u32_at(rest, 4));
        let bytes = length.checked_add(4)?;
        // A pull has no body.
        if bytes > rest.len() || PREFIX_BYTES + (mark & 0xff_ffff) as usize != bytes {
            return None;
        }
        let header = &rest[PREFIX_BYTES..bytes];
        let (place, varying) = self.find((mark >> 24) as u8, header, origin)?;
        if let Some(signed) = &self.places[place].signed
            && !signed.is_right(&self.accounts, header, &varying, &[], &[])
        {
            return None;
        }
        let [queue_offset, commit_offset] = varying.numbers;
        Some(Taken { place, end: at + bytes, opaque: varying.opaque, queue_offset, commit_offset })
    }

    fn find(&mut self, kind: u8, header: &[u8], origin: u64) -> Option<(usize, Varying)> {
        let mut texts = Vec::new();
        let last = self.lasts.of(origin);
        if let Some(last) = last {
            for number in [self.places.get(last)?.next, last] {
                let place = self.places.get(number)?;
                if place.origin == origin
                    && let Some(found) = place.layout.cut(header, &mut texts)
                {
                    return Some(self.found(last, number, found));
                }
            }
        } else if self.places.is_empty() {
            return None;
        }
        let (mut key, found) = key_and_varying(kind, header, &PULLS, &mut texts)?;
        key.extend_from_slice(&origin.to_ne_bytes());
        let number = *self.numbers.get(&key)?;
        Some(self.found(last.unwrap_or(number), number, found))
    }

    fn found(&mut self, last: usize, number: usize, varying: Varying) -> (usize, Varying) {
        self.places[last].next = number;
        self.lasts.set(number);
        (number, varying)
    }
}

/// A file of the log, as far as it is written.
pub struct Log<'a> {
    pub view: &'a [u8],
    /// The log offset of its first byte.
    pub from_offset: i64,
    /// The magic that the records have to have.
    pub magic: i32,
    /// The log offset before which no record may be.
    pub least: i64,
}

/// Records that were found: where they lie in the file, with those that adjoin as one.
#[derive(Debug, Default, PartialEq)]
pub struct Placed {
    pub count: usize,
    pub size_bytes: usize,
    pub places: Vec<(usize, usize)>,
}

impl Placed {
    /// Whether they are to be copied behind the head.
    pub fn is_copied(&self) -> bool {
        let most = if self.places.len() > 1 { MOST_COPIED_BYTES } else { COPIED_BYTES };
        self.size_bytes <= most
    }
}

/// Finds the records of the first units, as many as fit but at least one; `None` if anything is
/// unusual about a unit, or about one of these records.
pub fn place(units: &[u8], log: &Log, most: usize, most_bytes: usize) -> Option<Placed> {
    let mut found = Placed::default();
    let mut is_full = false;
    if units.is_empty() || !units.len().is_multiple_of(UNIT_BYTES) || i64::try_from(log.view.len()).is_err()
    {
        return None;
    }
    for unit in units.chunks_exact(UNIT_BYTES) {
        let (start, size) = (i64_at(unit, 0), i32_at(unit, 8));
        let size = usize::try_from(size).ok()?;
        if start < log.least || !(HEAD_BYTES..i32::MAX as usize).contains(&size) {
            return None;
        }
        is_full =
            is_full || (found.count > 0 && (found.count >= most || found.size_bytes + size > most_bytes));
        if is_full {
            continue;
        }
        let begin = usize::try_from(start.checked_sub(log.from_offset)?).ok()?;
        let record = log.view.get(begin..begin.checked_add(size)?)?;
        if i32_at(record, 0) as usize != size
            || i32_at(record, 4) != log.magic
            || i64_at(record, OFFSET_AT) != start
            // It may be one whose end was lost.
            || record[size - 1] == 0
        {
            return None;
        }
        found.count += 1;
        found.size_bytes += size;
        match found.places.last_mut() {
            Some((_, end)) if *end == begin => *end += size,
            _ => found.places.push((begin, begin + size)),
        }
    }
    Some(found)
}

/// The pieces of the head of an answer around its own values, in the form that the server writes.
pub enum Pieces<'a> {
    /// Around the offsets where the next pull begins, and where the queue begins and ends, and the
    /// opaque.
    Json([&'a [u8]; 5]),
    /// Before the opaque, between that and the length of the fields, what is before each of the
    /// three offsets, and what is behind them.
    Binary([&'a [u8]; 6]),
}

impl<'a> Pieces<'a> {
    /// Which form they have is told by their number; `None` for any other.
    pub fn of(pieces: &[&'a [u8]]) -> Option<Pieces<'a>> {
        match pieces.len() {
            5 => Some(Pieces::Json(pieces.try_into().ok()?)),
            6 => Some(Pieces::Binary(pieces.try_into().ok()?)),
            _ => None,
        }
    }

    /// The head of an answer with these offsets, whose frame has so many bytes behind it; `None` if
    /// that would be too long.
    pub fn head(&self, opaque: i32, offsets: [i64; 3], more_bytes: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let kind = match self {
            Pieces::Json(pieces) => {
                for (piece, value) in pieces.iter().zip(offsets) {
                    out.extend_from_slice(piece);
                    push_decimal(&mut out, value);
                }
                out.extend_from_slice(pieces[3]);
                push_decimal(&mut out, i64::from(opaque));
                out.extend_from_slice(pieces[4]);
                JSON
            }
            Pieces::Binary([before, between, names @ .., behind]) => {
                out.extend_from_slice(before);
                out.extend_from_slice(&opaque.to_be_bytes());
                out.extend_from_slice(between);
                let length_at = out.len();
                out.extend_from_slice(&[0; 4]);
                for (name, value) in names.iter().zip(offsets) {
                    out.extend_from_slice(name);
                    let value_at = out.len();
                    out.extend_from_slice(&[0; 4]);
                    push_decimal(&mut out, value);
                    set_length(&mut out, value_at);
                }
                out.extend_from_slice(behind);
                set_length(&mut out, length_at);
                ROCKETMQ
            }
        };
        let header_bytes = out.len() - PREFIX_BYTES;
        let length = header_bytes + 4 + more_bytes;
        if length > MOST_FRAME_BYTES {
            return None;
        }
        let mark = u32::from(kind) << 24 | header_bytes as u32;
        out[..4].copy_from_slice(&(length as u32).to_be_bytes());
        out[4..PREFIX_BYTES].copy_from_slice(&mark.to_be_bytes());
        Some(out)
    }
}

/// Writes how many bytes follow a length of four bytes.
fn set_length(out: &mut [u8], length_at: usize) {
    let length = (out.len() - length_at - 4) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::binary;
    use crate::record::MAGIC_V1;
    use crate::record::tests::record;
    use crate::table::tests::frame;

    fn json(opaque: &str, queue_offset: &str, commit_offset: &str, topic: &str) -> Vec<u8> {
        format!(
            "{{\"code\":11,\"extFields\":{{\"topic\":\"{topic}\",\"commitOffset\":\"{commit_offset}\",\
             \"queueOffset\":\"{queue_offset}\"}},\"flag\":0,\"opaque\":{opaque},\"version\":401}}"
        )
        .into_bytes()
    }

    #[test]
    fn pulls_are_taken_that_differ_in_offsets_and_opaque() {
        let mut pulls = Pulls::default();
        assert_eq!(pulls.take(&frame(JSON, &json("1", "2", "3", "T"), b""), 0, 0), None);
        assert_eq!(pulls.learn(JSON, &json("1", "2", "3", "T"), 0, None), Some(0));
        let fields: [(&str, &[u8]); 2] = [("queueOffset", b"5"), ("commitOffset", b"6")];
        assert_eq!(pulls.learn(ROCKETMQ, &binary(4, &fields), 0, None), Some(1));
        assert_eq!(pulls.learn(JSON, &json("7", "8", "9", "T"), 0, None), Some(0));
        assert_eq!(pulls.learn(JSON, &json("7", "x", "9", "T"), 0, None), None);
        let mut data = frame(JSON, &json("70", "80", "90", "T"), b"");
        let at = data.len();
        let meant = Taken { place: 0, end: at, opaque: 70, queue_offset: 80, commit_offset: 90 };
        data.extend(b"more");
        assert_eq!(pulls.take(&data, 0, 0), Some(meant));
        let other = frame(ROCKETMQ, &binary(4, &[fields[1], fields[0]]), b"");
        assert_eq!(pulls.take(&other, 0, 0).unwrap().place, 1);
        for wrong in [
            frame(JSON, &json("70", "-1", "90", "T"), b""),
            frame(JSON, &json("70", "80", "90", "U"), b""),
            frame(JSON, &json("70", "80", "90", "T"), b"body"),
        ] {
            assert_eq!(pulls.take(&wrong, 0, 0), None);
        }
        for end in 0..at {
            assert_eq!(pulls.take(&data[..end], 0, 0), None);
        }
    }

    fn log(view: &[u8]) -> Log<'_> {
        Log { view, from_offset: 1000, magic: MAGIC_V1, least: 1000 }
    }

    fn unit(offset: i64, size: usize) -> Vec<u8> {
        let mut unit = offset.to_be_bytes().to_vec();
        unit.extend((size as i32).to_be_bytes());
        unit.extend([0; 8]);
        unit
    }

    #[test]
    fn records_are_placed_as_far_as_they_fit() {
        let (mut view, mut units) = (vec![0; 3], Vec::new());
        for number in 0..4 {
            if number == 2 {
                view.extend([9; 5]);
            }
            let offset = 1000 + view.len() as i64;
            let one = record(offset, b"body", b"T", b"a\x01b\x02");
            units.extend(unit(offset, one.len()));
            view.extend(one);
        }
        let size = (view.len() - 8) / 4;
        let places = vec![(3, 3 + 2 * size), (8 + 2 * size, 8 + 4 * size)];
        let all = Placed { count: 4, size_bytes: 4 * size, places };
        assert_eq!(place(&units, &log(&view), 9, 9999), Some(all));
        let two = Placed { count: 2, size_bytes: 2 * size, places: vec![(3, 3 + 2 * size)] };
        assert_eq!(place(&units, &log(&view), 2, 9999), Some(two));
        assert_eq!(place(&units, &log(&view), 0, 9999).unwrap().count, 1);
        for (most_bytes, count) in [(0, 1), (2 * size - 1, 1), (2 * size, 2), (2 * size + 1, 2)] {
            assert_eq!(place(&units, &log(&view), 9, most_bytes).unwrap().count, count);
        }
        assert_eq!(place(&units, &log(&view[..view.len() - 1]), 9, 9999), None);
        assert_eq!(place(&units[1..], &log(&view), 9, 9999), None);
        assert_eq!(place(&[], &log(&view), 9, 9999), None);
        assert_eq!(place(&units, &Log { least: 1004, ..log(&view) }, 9, 9999), None);
        for (at, wrong) in [(0, 9), (7, 9), (33, 9), (size - 1, 0)] {
            let mut damaged = view.clone();
            damaged[3 + at] = wrong;
            assert_eq!(place(&units, &log(&damaged), 9, 9999), None);
        }
        units.extend(unit(1000, i32::MAX as usize));
        assert_eq!(place(&units, &log(&view), 9, 9999), None);
    }

    #[test]
    fn heads_have_the_pieces_around_their_values() {
        let pieces = Pieces::of(&[b"{", b"|", b"|", b"#", b"}"]).unwrap();
        let header = b"{8|0|77#5}";
        let head = pieces.head(5, [8, 0, 77], 4).unwrap();
        assert_eq!([&head[..], b"body"].concat(), frame(JSON, header, b"body"));
        assert_eq!(pieces.head(5, [8, 0, 77], MOST_FRAME_BYTES), None);
        let pieces = Pieces::of(&[b"B", b"-", b"n", b"l", b"u", b"."]).unwrap();
        let header = b"B\0\0\0\x05-\0\0\0\x14n\0\0\0\x018l\0\0\0\x010u\0\0\0\x0277.";
        assert_eq!(pieces.head(5, [8, 0, 77], 0).unwrap(), frame(ROCKETMQ, header, b""));
        for count in [0, 4, 7] {
            assert!(Pieces::of(&vec![&b""[..]; count]).is_none());
        }
    }
}
