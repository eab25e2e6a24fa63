// SPDX-License-Identifier: Apache-2.0
//! Finds the holes in a JSON header, which are its opaque and two or three fields, and all its fields.
//!
//! It knows headers as clients write them: one object without blanks, names of letters, texts and
//! whole numbers as values, and among them the object extFields. All others are left to Python.

use crate::bytes::{EVERY, below, equal};
use crate::header::{Field, Names, Value};
use memchr::memchr2;
use std::ops::Range;

/// Where the holes are: without the quotation marks of texts.
#[derive(Debug, PartialEq)]
pub struct JsonHoles {
    pub opaque: Range<usize>,
    pub first: Range<usize>,
    pub second: Range<usize>,
    pub signature: Option<Range<usize>>,
    /// The object extFields, with its braces.
    pub object: Range<usize>,
    /// What it has, in the order of the header.
    pub fields: Vec<Field>,
}

/// More names than this in one object are left to Python.
const MOST_NAMES: usize = 64;
const MOST_NAME_BYTES: usize = 64;
const MOST_DIGITS: usize = 10;

struct Scanner<'a> {
    header: &'a [u8],
    names: &'a Names,
    at: usize,
    opaque: Option<Range<usize>>,
    first: Option<Range<usize>>,
    second: Option<Range<usize>>,
    signature: Option<Range<usize>>,
    object: Option<Range<usize>>,
    fields: Vec<Field>,
}

pub fn json_holes(header: &[u8], names: &Names) -> Option<JsonHoles> {
    let (opaque, first, second, signature, object) = (None, None, None, None, None);
    let fields = Vec::new();
    let mut scanner = Scanner { header, names, at: 0, opaque, first, second, signature, object, fields };
    scanner.object(|scanner, name| match &header[name] {
        b"extFields" => {
            let begin = scanner.at;
            scanner.object(Scanner::field)?;
            scanner.object = Some(begin..scanner.at);
            Some(())
        }
        name => {
            let value = scanner.any()?;
            if name == b"opaque" {
                if scanner.header[value.start - 1] == b'"' {
                    return None; // a text, which the decoder may read as a number
                }
                scanner.opaque = Some(value);
            }
            Some(())
        }
    })?;
    if scanner.at != header.len() {
        return None;
    }
    Some(JsonHoles {
        opaque: scanner.opaque?,
        first: scanner.first?,
        second: scanner.second?,
        signature: scanner.signature,
        object: scanner.object?,
        fields: scanner.fields,
    })
}

/// A hole that has two names at once is none: which of the two counts is for the decoder to say.
fn put_once(hole: &mut Option<Range<usize>>, place: Range<usize>) -> Option<()> {
    hole.is_none().then(|| *hole = Some(place))
}

impl<'a> Scanner<'a> {
    fn field(&mut self, name: Range<usize>) -> Option<()> {
        let place = self.string()?;
        let value = (self.names.of)(&self.header[name.clone()]);
        self.fields.push(Field { name, value, place: place.clone() });
        match value {
            Value::First => put_once(&mut self.first, place),
            Value::Second => put_once(&mut self.second, place),
            Value::Signature => put_once(&mut self.signature, place),
            Value::Same | Value::Word => Some(()),
        }
    }

    fn object(&mut self, mut member: impl FnMut(&mut Self, Range<usize>) -> Option<()>) -> Option<()> {
        let mut names: Vec<&[u8]> = Vec::with_capacity(16);
        self.expect(b'{')?;
        loop {
            let place = self.string()?;
            let name = &self.header[place.clone()];
            if name.is_empty()
                || name.len() > MOST_NAME_BYTES
                || !name.iter().all(u8::is_ascii_alphabetic)
                || names.len() >= MOST_NAMES
                || names.contains(&name)
            {
                return None;
            }
            names.push(name);
            self.expect(b':')?;
            member(self, place)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// A text or a whole number.
    fn any(&mut self) -> Option<Range<usize>> {
        if *self.header.get(self.at)? == b'"' {
            return self.string();
        }
        let begin = self.at;
        if self.header[begin] == b'-' {
            self.at += 1;
        }
        let digits = self.header[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (1..=MOST_DIGITS).contains(&digits).then_some(begin..self.at)
    }

    /// A text; what lies between its quotation marks.
    fn string(&mut self) -> Option<Range<usize>> {
        self.expect(b'"')?;
        let begin = self.at;
        loop {
            self.at += memchr2(b'"', b'\\', self.header.get(self.at..)?)?;
            if self.header[self.at] == b'"' {
                self.at += 1;
                let place = begin..self.at - 1;
                return self.header[place.clone()].iter().all(|byte| *byte >= b' ').then_some(place);
            }
            self.at += 2;
        }
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    fn next(&mut self) -> Option<u8> {
        let found = *self.header.get(self.at)?;
        self.at += 1;
        Some(found)
    }
}

/// Appends what a text of JSON means, of which `text` is the beginning without its first quotation
/// mark; returns where the other mark is. `None` for texts that are left to Python.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain_bytes(&text[at..], out);
        match text.get(at..)? {
            // Properties are separated by two characters whose escapes are these.
            [b'\\', b'u', b'0', b'0', b'0', digit @ b'1'..=b'9', ..] => {
                out.push(digit - b'0');
                at += 6;
            }
            [b'"', ..] => return Some(at),
            [b'\\', mark, ..] => {
                let (character, length) = match mark {
                    b'u' => character(&text[at..])?,
                    b'"' | b'\\' | b'/' => (char::from(*mark), 2),
                    b'b' => ('\u{8}', 2),
                    b'f' => ('\u{c}', 2),
                    b'n' => ('\n', 2),
                    b'r' => ('\r', 2),
                    b't' => ('\t', 2),
                    _ => return None,
                };
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
            }
            _ => return None,
        }
    }
}

/// Appends the bytes up to the first quotation mark, backslash or control character; returns how
/// many there are. It looks at eight bytes at once: the pieces are short, so that a search that
/// prepares itself for long ones would take longer.
fn plain_bytes(text: &[u8], out: &mut Vec<u8>) -> usize {
    let mut at = 0;
    while let Some(eight) = text.get(at..at + 8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap());
        let found = EVERY & (below(word, b' ') | equal(word, b'"') | equal(word, b'\\'));
        out.extend_from_slice(&word.to_le_bytes());
        if found != 0 {
            let length = found.trailing_zeros() as usize / 8;
            out.truncate(out.len() - 8 + length);
            return at + length;
        }
        at += 8;
    }
    let rest = &text[at..];
    let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..b' ');
    let length = rest.iter().take_while(is_plain).count();
    out.extend_from_slice(&rest[..length]);
    at + length
}

/// The character that an escape with four hexadecimal digits means, or two of them together, and
/// how many bytes that has. `None` for half a character.
fn character(text: &[u8]) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = unit(&text[6..])?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).map(|found| (found, 12))
}

/// The number that an escape with four hexadecimal digits names.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::SENDS;

    const HEADER: &[u8] =
        br#"{"code":310,"extFields":{"b":"x\"opaque\":1","g":"17","i":"a\u0001b"},"flag":0,"opaque":5}"#;

    #[test]
    fn holes_are_found_in_any_order_and_not_in_texts() {
        let holes = json_holes(HEADER, &SENDS).unwrap();
        assert_eq!(&HEADER[holes.opaque], b"5");
        assert_eq!(&HEADER[holes.first], b"17");
        assert_eq!(&HEADER[holes.second], br"a\u0001b");
        let long = br#"{"opaque":5,"extFields":{"properties":"","bornTimestamp":"1"},"version":-1}"#;
        assert!(json_holes(long, &SENDS).is_some());
    }

    #[test]
    fn doubtful_headers_have_no_holes() {
        for wrong in [
            &br#"{"opaque":5,"opaque":6,"extFields":{"g":"1","i":""}}"#[..],
            br#"{"opaque":5,"extFields":{"g":"1","bornTimestamp":"2","i":""}}"#,
            br#"{"opaque":5,"extFields":{"g":"1","i":""},"extFields":{}}"#,
            br#"{"opaque":5,"extFields":{"g":1,"i":""}}"#,
            br#"{"opaque":5,"extFields":{"\u0067":"1","g":"1","i":""}}"#,
            br#"{"opaque":5,"extFields":{"g":"1"}}"#,
            br#"{"opaque":5,"extFields":{"g":"1","i":"","x":{"g":"1"}}}"#,
            br#"{"opaque":5,"extFields":{"g":"1","i":""}} "#,
            br#"{"opaque":5, "extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":5,"x":null,"extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":5,"x":"1","x":"1","extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":5,"x1":"1","extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":5,"extFields":{}}"#,
            br#"{"opaque":{},"extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":"5","extFields":{"g":"1","i":""}}"#,
            br#"{"opaque":5,"extFields":{"g":"1","i":"\"#,
            b"{",
            b"",
            b"{\"",
            b"{\"a\\",
        ] {
            assert_eq!(json_holes(wrong, &SENDS), None, "{}", String::from_utf8_lossy(wrong));
        }
        for end in 0..HEADER.len() {
            assert_eq!(json_holes(&HEADER[..end], &SENDS), None);
        }
    }

    #[test]
    fn texts_end_where_their_mark_is_wherever_that_is() {
        for length in 0..40 {
            for mark in ["\"", "\\u0001", "\\n", "\x1f", "\x00", ""] {
                for rest in ["", "\"", "abc\"", "\u{1}\"\\", "0123456789\""] {
                    let begin: String = "a~!#[]\u{7f}é €".chars().cycle().take(length).collect();
                    let text = format!("{begin}{mark}{rest}");
                    let mut out = Vec::new();
                    let end = unescape(text.as_bytes(), &mut out);
                    let meant = naive(text.as_bytes());
                    assert_eq!(end, meant.as_ref().map(|found| found.0), "{text:?}");
                    assert!(meant.is_none_or(|found| found.1 == out), "{text:?}");
                }
            }
        }
    }

    /// What `unescape` does, byte by byte, for texts with the escapes of the test above.
    fn naive(text: &[u8]) -> Option<(usize, Vec<u8>)> {
        let (mut at, mut out) = (0, Vec::new());
        loop {
            match text.get(at)? {
                b'"' => return Some((at, out)),
                b'\\' if text[at..].starts_with(b"\\u0001") => {
                    out.push(1);
                    at += 6;
                }
                b'\\' if text[at..].starts_with(b"\\n") => {
                    out.push(b'\n');
                    at += 2;
                }
                b'\\' | 0..0x20 => return None,
                byte => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
    }

    #[test]
    fn escapes_are_undone() {
        let mut out = Vec::new();
        let text = "k\\u0001é\\\"\\\\\\/\\n\\u0002\\u007F\\u00e9\\uD83D\\uDE00\" rest".as_bytes();
        assert_eq!(unescape(text, &mut out), Some(text.len() - 6));
        assert_eq!(out, "k\u{1}é\"\\/\n\u{2}\u{7f}é😀".as_bytes());
        for wrong in [
            &b"\\x41\""[..],
            b"\\u00",
            b"\\",
            b"a",
            b"a\x01\"",
            b"\\u00g0\"",
            b"\\ud83d\"",
            b"\\ud83d\\u0041\"",
            b"\\ude00\\ud83d\"",
            b"\\u+041\"",
        ] {
            assert_eq!(unescape(wrong, &mut Vec::new()), None);
        }
    }
}
