// SPDX-License-Identifier: Apache-2.0
//! Signatures of requests: HMAC-SHA1 in Base64, over the values of all other fields, in the order of
//! their names, and the body.
//!
//! What is signed of a header is found out when that is learned: pieces that are the same in all
//! headers of the place, and between them what differs. The signature of each request is computed.

use crate::header::{Field, JSON, Layout, Names, Value, Varying, found_in};
use crate::json_header::unescape;
use sha1::{Digest, Sha1};
use std::hint::black_box;
use std::ops::Range;

/// How many characters a signature has.
pub const SIGNATURE_BYTES: usize = 28;
const KEY_BYTES: usize = 64;
const DIGEST_BYTES: usize = 20;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Two hashes that begin with the secret of an account, and are overwritten when they are dropped.
struct Account {
    inner: Sha1,
    outer: Sha1,
}

impl Account {
    /// The signature of what was given to a copy of the inner hash.
    fn signature(&self, inner: Sha1) -> [u8; SIGNATURE_BYTES] {
        let mut outer = self.outer.clone();
        outer.update(inner.finalize());
        base64(outer.finalize().into())
    }
}

/// The accounts that sign. Each has a place of its own in memory: a longer vector would leave copies
/// of their secrets behind.
#[allow(clippy::vec_box)]
#[derive(Default)]
pub struct Accounts(Vec<Box<Account>>);

/// A piece of what is signed.
#[derive(PartialEq, Debug)]
enum Piece {
    Same(Vec<u8>),
    /// The digits of the first number, or of the second.
    Number(usize),
    /// The properties.
    Text,
}

/// What is signed of the headers of a place, and by whom.
pub struct Signed {
    account: u32,
    pieces: Vec<Piece>,
}

impl Accounts {
    /// Adds an account by its secret as HMAC uses it; returns its number, or `None` if that has
    /// another length.
    pub fn add(&mut self, key: &[u8]) -> Option<u32> {
        let number = u32::try_from(self.0.len()).ok()?;
        if key.len() != KEY_BYTES {
            return None;
        }
        let mut account = Box::new(Account { inner: Sha1::new(), outer: Sha1::new() });
        for byte in key {
            account.inner.update([byte ^ 0x36]);
            account.outer.update([byte ^ 0x5c]);
        }
        self.0.push(account);
        Some(number)
    }

    /// What an account signs some values and a body with; `None` if there is no such account.
    pub fn signature(&self, account: u32, signed: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
        let account = self.0.get(account as usize)?;
        let mut inner = account.inner.clone();
        inner.update(signed);
        Some(account.signature(inner))
    }

    /// Forgets all of them; their secrets are overwritten.
    pub fn wipe(&mut self) {
        self.0.clear();
    }
}

impl Signed {
    /// What is signed of headers with a layout, which are allowed from an origin to an account:
    /// `Some(None)` for those that nobody has to sign, which have neither.
    pub fn by(
        layout: &Layout,
        kind: u8,
        header: &[u8],
        names: &Names,
        accounts: &Accounts,
        who: (u64, Option<u32>),
    ) -> Option<Option<Signed>> {
        match who {
            (0, None) if !layout.is_signed() => Some(None),
            (1.., Some(account)) => Signed::of(kind, header, names, accounts, account).map(Some),
            _ => None,
        }
    }

    /// What an account signs of headers like this one, which has a signature; `None` if it is
    /// written in such a way that this is not certain, or if there is no such account.
    fn of(kind: u8, header: &[u8], names: &Names, accounts: &Accounts, account: u32) -> Option<Signed> {
        accounts.0.get(account as usize)?;
        let mut fields = found_in(kind, header, names)?.fields;
        // Java sorts by units of UTF-16. For these names, all orders are the same.
        let is_usual = |field: &Field| header[field.name.clone()].iter().all(u8::is_ascii_alphanumeric);
        if !fields.iter().all(is_usual) {
            return None;
        }
        fields.sort_unstable_by(|one, other| header[one.name.clone()].cmp(&header[other.name.clone()]));
        let (mut pieces, mut is_signed) = (Vec::new(), false);
        for field in fields {
            let piece = match field.value {
                Value::Signature => {
                    is_signed = true;
                    continue;
                }
                Value::First => Piece::Number(0),
                Value::Second if names.has_text => Piece::Text,
                Value::Second => Piece::Number(1),
                Value::Word => return None,
                Value::Same => Piece::Same(meant(kind, header, field.place)?),
            };
            match (pieces.last_mut(), piece) {
                (Some(Piece::Same(before)), Piece::Same(more)) => before.extend(more),
                (_, piece) => pieces.push(piece),
            }
        }
        is_signed.then_some(Signed { account, pieces })
    }

    /// Whether a header of the place is signed as it should be, with its properties and a body. That
    /// takes as long whatever the signature is.
    pub fn is_right(
        &self,
        accounts: &Accounts,
        header: &[u8],
        varying: &Varying,
        text: &[u8],
        body: &[u8],
    ) -> bool {
        let Some(account) = accounts.0.get(self.account as usize) else { return false };
        let mut inner = account.inner.clone();
        for piece in &self.pieces {
            inner.update(match piece {
                Piece::Same(bytes) => bytes,
                Piece::Number(which) => varying.digits[*which].of(header),
                Piece::Text => text,
            });
        }
        inner.update(body);
        let expected = account.signature(inner);
        let signature = varying.signature.of(header);
        signature.len() == SIGNATURE_BYTES
            && black_box(
                expected.iter().zip(signature).fold(0, |found, (one, other)| found | (one ^ other)),
            ) == 0
    }
}

/// Whether a signature begins with these bytes, as far as that can be seen.
pub fn is_signature(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    text.len() == SIGNATURE_BYTES && text.iter().all(is_digit)
}

/// What the value of a field means that is written at a place; `None` if the decoder may read
/// another text.
fn meant(kind: u8, header: &[u8], place: Range<usize>) -> Option<Vec<u8>> {
    let bytes = if kind == JSON {
        let mut out = Vec::with_capacity(place.len());
        if unescape(&header[place.start..], &mut out)? != place.len() {
            return None;
        }
        out
    } else {
        header[place.start + 4..place.end].to_vec() // behind the length
    };
    std::str::from_utf8(&bytes).ok()?;
    Some(bytes)
}

fn base64(digest: [u8; DIGEST_BYTES]) -> [u8; SIGNATURE_BYTES] {
    let mut out = [b'='; SIGNATURE_BYTES];
    for (three, four) in digest.chunks(3).zip(out.chunks_exact_mut(4)) {
        let bits =
            three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for (number, digit) in four.iter_mut().take(three.len() + 1).enumerate() {
            *digit = DIGITS[(bits >> (18 - 6 * number) & 63) as usize];
        }
    }
    out
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::header::tests::{binary, json};
    use crate::header::{PULLS, ROCKETMQ, SENDS};

    pub const KEY: [u8; KEY_BYTES] = {
        let mut key = [0; KEY_BYTES];
        (key[0], key[1], key[2]) = (b'k', b'e', b'y');
        key
    };

    /// The signature by this key.
    pub fn signature(signed: &[u8]) -> String {
        let hash = |pad: u8, rest: &[u8]| Sha1::digest([&KEY.map(|byte| byte ^ pad), rest].concat());
        String::from_utf8(base64(hash(0x5c, &hash(0x36, signed)).into()).to_vec()).unwrap()
    }

    /// A header of a send with an account and a signature of its fields and this body.
    pub fn signed_json(opaque: &str, born: &str, text: &str, topic: &str, body: &[u8]) -> Vec<u8> {
        let text_bytes = text.replace("\\u0001", "\x01").replace("\\u0002", "\x02");
        let values = format!("meP{topic}0{born}{text_bytes}");
        let signature = signature(&[values.as_bytes(), body].concat());
        let header = String::from_utf8(json(opaque, born, text, topic)).unwrap();
        let more = format!("{{\"Signature\":\"{signature}\",\"AccessKey\":\"me\",\"a\"");
        header.replace("{\"a\"", &more).into_bytes()
    }

    fn accounts() -> Accounts {
        let mut accounts = Accounts::default();
        assert_eq!(
            (accounts.add(&KEY), accounts.add(&[1; 64]), accounts.add(b"key")),
            (Some(0), Some(1), None)
        );
        accounts
    }

    #[test]
    fn a_signature_is_that_of_the_specification() {
        let text = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(signature(text), "3nybhbi3iqa8ino29wqQcBydtNk=");
        assert!(is_signature(signature(text).as_bytes()));
        assert!(!is_signature(b"3nybhbi3iqa8ino29wqQcBydtN\"="));
    }

    fn is_right(header: &[u8], other: &[u8], body: &[u8], account: u32) -> bool {
        let (accounts, mut texts) = (accounts(), Vec::new());
        let signed = Signed::of(JSON, header, &SENDS, &accounts, account).unwrap();
        let Some(varying) = Layout::of(JSON, header, &SENDS).unwrap().cut(other, &mut texts) else {
            return false;
        };
        signed.is_right(&accounts, other, &varying, &texts, body)
    }

    #[test]
    fn every_signature_is_checked() {
        let first = signed_json("1", "17", "a\\u0001b", "T", b"body");
        let other = signed_json("2", "018", "a\\u0001c\\u0002", "T", b"more");
        assert!(is_right(&first, &first, b"body", 0));
        assert!(is_right(&first, &other, b"more", 0));
        assert!(!is_right(&first, &other, b"more", 1));
        assert!(!is_right(&first, &other, b"body", 0));
        let text = String::from_utf8(other).unwrap();
        for (before, after) in [("\"018\"", "\"18\""), ("u0001c", "u0001d"), ("=\"", "A\"")] {
            assert!(!is_right(&first, text.replace(before, after).as_bytes(), b"more", 0));
        }
        assert!(is_right(&first, text.replace(":2,", ":3,").as_bytes(), b"more", 0), "it is not signed");
    }

    #[test]
    fn binary_headers_are_signed_in_the_order_of_their_names() {
        let values = |queue: &[u8], commit: &[u8], signature: &str| {
            let fields: [(&str, &[u8]); 5] = [
                ("topic", b"T"),
                ("queueOffset", queue),
                ("Signature", signature.as_bytes()),
                ("commitOffset", commit),
                ("AccessKey", b"me"),
            ];
            binary(5, &fields)
        };
        let header = values(b"17", b"4", &signature(b"me417T"));
        let accounts = accounts();
        let signed = Signed::of(ROCKETMQ, &header, &PULLS, &accounts, 0).unwrap();
        let layout = Layout::of(ROCKETMQ, &header, &PULLS).unwrap();
        let is_right = |header: &[u8]| {
            let varying = layout.cut(header, &mut Vec::new()).unwrap();
            signed.is_right(&accounts, header, &varying, b"", b"")
        };
        assert!(is_right(&header));
        assert!(is_right(&values(b"18", b"05", &signature(b"me0518T"))));
        assert!(!is_right(&values(b"18", b"5", &signature(b"me0518T"))));
        assert!(layout.cut(&values(b"18", b"5", "short"), &mut Vec::new()).is_none());
    }

    #[test]
    fn headers_of_which_it_is_not_certain_what_is_signed_are_left_to_python() {
        let mut accounts = accounts();
        let of = |header: &[u8], accounts: &Accounts, account| {
            Signed::of(JSON, header, &SENDS, accounts, account).is_some()
        };
        let header = signed_json("1", "17", "a", "T", b"");
        assert!(of(&header, &accounts, 0));
        assert!(!of(&header, &accounts, 2));
        assert!(!of(&json("1", "17", "a", "T"), &accounts, 0), "there is no signature");
        assert!(!of(&signed_json("1", "17", "a", "\\ud800", b""), &accounts, 0));
        let odd: [(&str, &[u8]); 4] = [("g", b"1"), ("i", b"a"), ("Signature", &[b'a'; 28]), ("x-y", b"")];
        assert!(Signed::of(ROCKETMQ, &binary(1, &odd), &SENDS, &accounts, 0).is_none());
        let odd: [(&str, &[u8]); 4] =
            [("g", b"1"), ("i", b"a"), ("Signature", &[b'a'; 28]), ("x", b"\xff")];
        assert!(Signed::of(ROCKETMQ, &binary(1, &odd), &SENDS, &accounts, 0).is_none());
        accounts.wipe();
        assert!(!of(&header, &accounts, 0));
    }
}
