// SPDX-License-Identifier: Apache-2.0
//! Headers as bytes with holes, which stand for what differs from message to message, or from pull to
//! pull, or from end to end of transactions. One of them is for the signature, if there is one.
//!
//! A layout is made of a header that was decoded and checked in Python. Another header has this
//! layout if it has the same bytes around the holes, and in each hole what the decoder reads as the
//! same kind of value. Then all that was found out about the first one holds for it as well. So it
//! does for one whose fields come in another order; that has the same key, but not the same layout.

use crate::bytes::{decimal, i32_at, u16_at, u32_at};
use crate::json_header::{json_holes, unescape};
use crate::properties::Part;
use crate::signature::{SIGNATURE_BYTES, is_signature};
use std::ops::Range;

pub const JSON: u8 = 0;
pub const ROCKETMQ: u8 = 1;
const FIELDS_AT: usize = 21;
const MOST_DIGITS: usize = 18;
const MOST_LETTERS: usize = 255;
/// More names than this in one header, or longer ones, are left to Python.
const MOST_NAMES: usize = 64;
const MOST_NAME_BYTES: usize = 0x7fff;

/// What may differ, and how it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Hole {
    JsonOpaque,
    /// The first number, or the second.
    JsonNumber(usize),
    JsonText,
    BinaryOpaque,
    /// The length of all fields.
    BinaryFieldsLength,
    /// The first number or the second, with its length.
    BinaryNumber(usize),
    /// The properties with their length.
    BinaryText,
    JsonSignature,
    /// The signature with its length.
    BinarySignature,
    /// A word of which nothing is made.
    JsonWord,
    /// Such a word with its length.
    BinaryWord,
}

/// Which fields of a header may differ.
pub struct Names {
    pub of: fn(&[u8]) -> Value,
    /// Whether the second is a text: both are numbers if it is none.
    pub has_text: bool,
}

/// Of a send, the time of birth and the properties.
pub const SENDS: Names = Names {
    of: |name| match name {
        b"g" | b"bornTimestamp" => Value::First,
        b"i" | b"properties" => Value::Second,
        b"Signature" => Value::Signature,
        _ => Value::Same,
    },
    has_text: true,
};

/// Of a pull, where it begins, and how far its group has come.
pub const PULLS: Names = Names {
    of: |name| match name {
        b"queueOffset" => Value::First,
        b"commitOffset" => Value::Second,
        b"Signature" => Value::Signature,
        _ => Value::Same,
    },
    has_text: false,
};

/// Of the end of a transaction, where its half message lies, in the queue and in the log, and the
/// names of the message, which nobody reads.
pub const ENDS: Names = Names {
    of: |name| match name {
        b"tranStateTableOffset" => Value::First,
        b"commitLogOffset" => Value::Second,
        b"msgId" | b"transactionId" => Value::Word,
        b"Signature" => Value::Signature,
        _ => Value::Same,
    },
    has_text: false,
};

/// What a header has in its holes; its properties are appended to the texts of a run.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Varying {
    pub opaque: i32,
    /// Of a send, only the first is one.
    pub numbers: [i64; 2],
    /// Where in the header the digits of the numbers are.
    pub digits: [Part; 2],
    /// Where in the header the signature is; nowhere if it has none.
    pub signature: Part,
}

/// The bytes of a header around its holes.
#[derive(PartialEq, Debug)]
pub struct Layout {
    holes: Vec<Hole>,
    parts: Vec<Box<[u8]>>,
}

/// What the value of a field means for a layout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// It is the same in all headers.
    Same,
    First,
    Second,
    /// It may be any word.
    Word,
    /// It signs all others.
    Signature,
}

/// A field of a header: where its name is and where its value is.
#[derive(PartialEq, Debug)]
pub struct Field {
    pub name: Range<usize>,
    pub value: Value,
    pub place: Range<usize>,
}

/// What lies where in a header.
pub struct Found {
    /// The holes, in their order.
    holes: Vec<(Hole, Range<usize>)>,
    /// Where all fields lie together.
    object: Range<usize>,
    pub fields: Vec<Field>,
}

/// What lies where in a header; `None` for one without all holes.
pub fn found_in(kind: u8, header: &[u8], names: &Names) -> Option<Found> {
    match kind {
        JSON => {
            let found = json_holes(header, names)?;
            let mut holes = vec![
                (Hole::JsonOpaque, found.opaque),
                (Hole::JsonNumber(0), found.first),
                (if names.has_text { Hole::JsonText } else { Hole::JsonNumber(1) }, found.second),
            ];
            holes.extend(found.signature.map(|place| (Hole::JsonSignature, place)));
            let words = found.fields.iter().filter(|field| field.value == Value::Word);
            holes.extend(words.map(|field| (Hole::JsonWord, field.place.clone())));
            holes.sort_by_key(|(_, place)| place.start);
            Some(Found { holes, object: found.object, fields: found.fields })
        }
        ROCKETMQ => found_in_binary(header, names),
        _ => None,
    }
}

fn found_in_binary(header: &[u8], names: &Names) -> Option<Found> {
    if header.len() < FIELDS_AT || i32_at(header, 13) != 0 {
        return None;
    }
    let mut holes = vec![(Hole::BinaryOpaque, 5..9), (Hole::BinaryFieldsLength, 17..FIELDS_AT)];
    let (mut has_first, mut has_second) = (false, false);
    let mut fields: Vec<Field> = Vec::with_capacity(16);
    let mut at = FIELDS_AT;
    while at < header.len() {
        let name_length = usize::from(u16_at(header.get(at..at + 2)?, 0));
        let (name_at, name_end) = (at + 2, at + 2 + name_length);
        let value_at = name_end + 4;
        let value_length = u32_at(header.get(name_end..value_at)?, 0) as usize;
        let value_end = value_at.checked_add(value_length)?;
        let name = &header[name_at..name_end];
        if value_end > header.len()
            || !(1..=MOST_NAME_BYTES).contains(&name_length)
            || fields.len() >= MOST_NAMES
            || fields.iter().any(|field| header[field.name.clone()] == *name)
        {
            return None;
        }
        let (value, place) = ((names.of)(name), name_end..value_end);
        let is_there_twice = match value {
            Value::First => std::mem::replace(&mut has_first, true),
            Value::Second => std::mem::replace(&mut has_second, true),
            Value::Same | Value::Word | Value::Signature => false,
        };
        if is_there_twice {
            return None;
        }
        match value {
            Value::First => holes.push((Hole::BinaryNumber(0), place.clone())),
            Value::Second => {
                let hole = if names.has_text { Hole::BinaryText } else { Hole::BinaryNumber(1) };
                holes.push((hole, place.clone()));
            }
            Value::Signature => holes.push((Hole::BinarySignature, place.clone())),
            Value::Word => holes.push((Hole::BinaryWord, place.clone())),
            Value::Same => {}
        }
        fields.push(Field { name: name_at..name_end, value, place });
        at = value_end;
    }
    (has_first && has_second).then_some(Found { holes, object: FIELDS_AT..header.len(), fields })
}

/// What is equal in all headers that mean the same but for their holes, as one text. Fields come in
/// the order of their names: some clients write them in another order each time.
fn key_with(kind: u8, header: &[u8], found: &mut Found) -> Vec<u8> {
    let mut key = Vec::with_capacity(header.len() + 64);
    key.push(kind);
    // Lengths make the key unambiguous, whatever bytes the parts have.
    let put = |key: &mut Vec<u8>, part: Range<usize>| {
        key.extend_from_slice(&(part.len() as u32).to_ne_bytes());
        key.extend_from_slice(&header[part]);
    };
    let mut at = 0;
    let object = found.object.clone();
    let outside = |place: &Range<usize>| place.end <= object.start || object.end <= place.start;
    let mut has_object = false;
    for (_, place) in found.holes.iter().filter(|(_, place)| outside(place)) {
        if !has_object && object.end <= place.start {
            put(&mut key, at..object.start);
            (at, has_object) = (object.end, true);
        }
        put(&mut key, at..place.start);
        at = place.end;
    }
    if !has_object {
        put(&mut key, at..object.start);
        at = object.end;
    }
    put(&mut key, at..header.len());
    found.fields.sort_unstable_by(|one, other| header[one.name.clone()].cmp(&header[other.name.clone()]));
    for field in &found.fields {
        put(&mut key, field.name.clone());
        if field.value == Value::Same {
            put(&mut key, field.place.clone());
        }
    }
    key
}

/// The key of a header; `None` for one without all holes.
pub fn key_of(kind: u8, header: &[u8], names: &Names) -> Option<Vec<u8>> {
    Some(key_with(kind, header, &mut found_in(kind, header, names)?))
}

/// The key of a header, and what is in its holes; its properties are appended to `texts`.
pub fn key_and_varying(
    kind: u8,
    header: &[u8],
    names: &Names,
    texts: &mut Vec<u8>,
) -> Option<(Vec<u8>, Varying)> {
    let mut found = found_in(kind, header, names)?;
    let mut varying = Varying::default();
    for (hole, place) in &found.holes {
        let length = hole.read(&header[place.start..], header.len(), texts, &mut varying)?;
        if length != place.len() {
            return None;
        }
    }
    Some((key_with(kind, header, &mut found), varying))
}

impl Hole {
    /// Reads what is in a hole, with which `rest` begins, the end of a header; returns how many bytes
    /// that are.
    fn read(
        self,
        rest: &[u8],
        header_bytes: usize,
        texts: &mut Vec<u8>,
        found: &mut Varying,
    ) -> Option<usize> {
        let at = header_bytes - rest.len();
        let part = |begin: usize, length| Part { at: (at + begin) as u32, bytes: length as u32 };
        Some(match self {
            Hole::JsonOpaque => {
                let length = digits(rest);
                let value = decimal(&rest[..length], 10)?;
                if length > 1 && rest[0] == b'0' {
                    return None;
                }
                found.opaque = i32::try_from(value).ok()?;
                length
            }
            Hole::JsonNumber(which) => {
                let length = digits(rest);
                found.numbers[which] = decimal(&rest[..length], MOST_DIGITS)?;
                found.digits[which] = part(0, length);
                length
            }
            Hole::JsonText => {
                let begin = texts.len();
                let length = unescape(rest, texts)?;
                std::str::from_utf8(&texts[begin..]).ok()?;
                length
            }
            Hole::BinaryOpaque => {
                found.opaque = i32_at(rest.get(..4)?, 0);
                if found.opaque < 0 {
                    return None;
                }
                4
            }
            Hole::BinaryFieldsLength => {
                if u32_at(rest.get(..4)?, 0) as usize != header_bytes - FIELDS_AT {
                    return None;
                }
                4
            }
            Hole::BinaryNumber(which) => {
                let number = value(rest)?;
                found.numbers[which] = decimal(number, MOST_DIGITS)?;
                found.digits[which] = part(4, number.len());
                4 + number.len()
            }
            Hole::BinaryText => {
                let text = value(rest)?;
                std::str::from_utf8(text).ok()?;
                texts.extend_from_slice(text);
                4 + text.len()
            }
            Hole::JsonSignature => {
                found.signature = part(0, SIGNATURE_BYTES);
                is_signature(rest.get(..SIGNATURE_BYTES)?).then_some(SIGNATURE_BYTES)?
            }
            Hole::BinarySignature => {
                found.signature = part(4, SIGNATURE_BYTES);
                is_signature(value(rest)?).then_some(4 + SIGNATURE_BYTES)?
            }
            Hole::JsonWord => letters(rest).filter(|length| *length > 0)?,
            Hole::BinaryWord => {
                let word = value(rest)?;
                (letters(word) == Some(word.len())).then_some(4 + word.len())?
            }
        })
    }
}

impl Layout {
    /// Whether the headers are signed.
    pub fn is_signed(&self) -> bool {
        self.holes.iter().any(|hole| matches!(hole, Hole::JsonSignature | Hole::BinarySignature))
    }

    /// The layout of a header that was decoded; `None` if others with it could mean something else.
    pub fn of(kind: u8, header: &[u8], names: &Names) -> Option<Layout> {
        let found = found_in(kind, header, names)?.holes;
        // A text that only the tolerant scanner reads may not be what it seems here.
        if kind == JSON && (std::str::from_utf8(header).is_err() || header.iter().any(|byte| *byte < b' '))
        {
            return None;
        }
        let (mut holes, mut parts) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (hole, place) in found {
            parts.push(header[at..place.start].into());
            at = place.end;
            holes.push(hole);
        }
        parts.push(header[at..].into());
        let layout = Layout { holes, parts };
        layout.cut(header, &mut Vec::new()).map(|_| layout)
    }

    /// Reads what is in the holes of a header, and appends its properties to `texts`; `None`, with
    /// perhaps something appended, for a header that does not have this layout.
    pub fn cut(&self, header: &[u8], texts: &mut Vec<u8>) -> Option<Varying> {
        let mut found = Varying::default();
        let mut rest = header;
        for (hole, part) in self.holes.iter().zip(&self.parts) {
            rest = rest.strip_prefix(&**part)?;
            let length = hole.read(rest, header.len(), texts, &mut found)?;
            rest = &rest[length..];
        }
        (*rest == **self.parts.last()?).then_some(found)
    }
}

/// A value behind its length; one that is empty counts as missing.
fn value(text: &[u8]) -> Option<&[u8]> {
    let length = u32_at(text.get(..4)?, 0) as usize;
    text[4..].get(..length).filter(|value| !value.is_empty())
}

/// How many letters and digits a text begins with; `None` for a longer word than any name of a
/// message.
fn letters(text: &[u8]) -> Option<usize> {
    let most = text.len().min(MOST_LETTERS + 1);
    let length = text[..most].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (length <= MOST_LETTERS).then_some(length)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn json(opaque: &str, born: &str, text: &str, topic: &str) -> Vec<u8> {
        format!(
            "{{\"code\":310,\"extFields\":{{\"a\":\"P\",\"b\":\"{topic}\",\"e\":\"0\",\"g\":\"{born}\",\
             \"i\":\"{text}\"}},\"flag\":0,\"language\":\"JAVA\",\"opaque\":{opaque},\"version\":401}}"
        )
        .into_bytes()
    }

    pub fn binary(opaque: i32, fields: &[(&str, &[u8])]) -> Vec<u8> {
        let mut texts = Vec::new();
        for (name, value) in fields {
            texts.extend((name.len() as u16).to_be_bytes());
            texts.extend(name.as_bytes());
            texts.extend((value.len() as u32).to_be_bytes());
            texts.extend(*value);
        }
        let mut header = vec![1, 54, 0, 1, 145];
        header.extend(opaque.to_be_bytes());
        header.extend([0; 8]);
        header.extend((texts.len() as u32).to_be_bytes());
        header.extend(texts);
        header
    }

    #[test]
    fn headers_that_differ_in_holes_have_one_layout_and_one_key() {
        let first = json("1", "17", "a\\u0001b", "T");
        let other = json("2147483647", "1700000000000", "", "T");
        let layout = Layout::of(JSON, &first, &SENDS).unwrap();
        let mut texts = Vec::new();
        let found = layout.cut(&first, &mut texts).unwrap();
        assert_eq!((found.opaque, found.numbers, found.digits[0].of(&first)), (1, [17, 0], &b"17"[..]));
        assert_eq!(texts, b"a\x01b");
        assert!(layout.cut(&other, &mut texts).is_some());
        assert_eq!(key_of(JSON, &first, &SENDS), key_of(JSON, &other, &SENDS));
        let elsewhere = json("1", "17", "a", "U");
        assert_eq!(layout.cut(&elsewhere, &mut texts), None);
        assert_ne!(key_of(JSON, &first, &SENDS), key_of(JSON, &elsewhere, &SENDS));
    }

    #[test]
    fn what_is_in_a_hole_has_to_be_of_its_kind() {
        let layout = Layout::of(JSON, &json("1", "17", "a", "T"), &SENDS).unwrap();
        for wrong in [
            json("2147483648", "1", "", "T"),
            json("01", "1", "", "T"),
            json("-1", "1", "", "T"),
            json("1.5", "1", "", "T"),
            json("1", "", "", "T"),
            json("1", "-1", "", "T"),
            json("1", "1234567890123456789", "", "T"),
            json("1", "1", "\\ud800", "T"),
            json("1", "1", "\x01", "T"),
            json("1", "1", "\",\"x\":\"", "T"),
        ] {
            assert_eq!(layout.cut(&wrong, &mut Vec::new()), None, "{}", String::from_utf8_lossy(&wrong));
        }
    }

    #[test]
    fn binary_headers_have_layouts_too() {
        let first = binary(5, &[("a", b"P"), ("b", b"T"), ("g", b"17"), ("i", b"x\x01y")]);
        let layout = Layout::of(ROCKETMQ, &first, &SENDS).unwrap();
        let mut texts = Vec::new();
        let other = binary(6, &[("a", b"P"), ("b", b"T"), ("g", b"18"), ("i", "é".as_bytes())]);
        let found = layout.cut(&other, &mut texts).unwrap();
        assert_eq!((found.opaque, found.numbers, found.digits[0].of(&other)), (6, [18, 0], &b"18"[..]));
        assert_eq!(texts, "é".as_bytes());
        assert_eq!(key_of(ROCKETMQ, &first, &SENDS), key_of(ROCKETMQ, &other, &SENDS));
        for wrong in [
            binary(-6, &[("a", b"P"), ("b", b"T"), ("g", b"18"), ("i", b"a")]),
            binary(6, &[("a", b"P"), ("b", b"T"), ("g", b"1a"), ("i", b"a")]),
            binary(6, &[("a", b"P"), ("b", b"T"), ("g", b"18"), ("i", b"\xff")]),
            binary(6, &[("a", b"P"), ("b", b"T"), ("g", b"18"), ("i", b"a"), ("c", b"")]),
        ] {
            assert_eq!(layout.cut(&wrong, &mut Vec::new()), None);
        }
        for twice in [[("g", &b"1"[..]), ("g", b"1"), ("i", b"a")], [("i", b"a"), ("g", b"1"), ("i", b"a")]]
        {
            assert_eq!(Layout::of(ROCKETMQ, &binary(1, &twice), &SENDS), None);
        }
    }

    #[test]
    fn cut_short_headers_have_no_layout() {
        let (text, packed) = (json("1", "17", "a", "T"), binary(1, &[("g", b"1"), ("i", b"a")]));
        for end in 0..text.len() {
            assert_eq!(Layout::of(JSON, &text[..end], &SENDS), None);
        }
        for end in 0..packed.len() {
            assert_eq!(Layout::of(ROCKETMQ, &packed[..end], &SENDS), None);
        }
        assert_eq!(Layout::of(JSON, &json("1", "17", "a", "T\n"), &SENDS), None);
        assert_eq!(Layout::of(7, &text, &SENDS), None);
    }
}
