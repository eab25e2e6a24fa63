// SPDX-License-Identifier: Apache-2.0
//! Plain properties, on which no transform acts: finds what the broker itself needs of them.
//!
//! Producers send the same names in the same order, so the names are learned: while a text has the
//! learned names in their order, none of them can be touched or come twice.

use crate::bytes::first_of;
use memchr::memchr;

const MOST_PAIRS: usize = 64;
const MISSES_TO_LEARN: u32 = 16;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Role {
    UniqKey,
    Keys,
    Tags,
    Wait,
    Half,
    Group,
    RealTopic,
    RealQueue,
    Other,
}

fn role_of(name: &[u8]) -> Role {
    match name {
        b"UNIQ_KEY" => Role::UniqKey,
        b"KEYS" => Role::Keys,
        b"TAGS" => Role::Tags,
        b"WAIT" => Role::Wait,
        b"TRAN_MSG" => Role::Half,
        b"PGROUP" => Role::Group,
        b"REAL_TOPIC" => Role::RealTopic,
        b"REAL_QID" => Role::RealQueue,
        _ => Role::Other,
    }
}

/// A part of a text: where it begins, and how many bytes it has; none if it has no bytes.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Part {
    pub at: u32,
    pub bytes: u32,
}

impl Part {
    pub fn is_there(self) -> bool {
        self.bytes > 0
    }

    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.at as usize..][..self.bytes as usize]
    }
}

/// Where the values lie in a text that matter to the broker.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Values {
    pub uniq_key: Part,
    pub keys: Part,
    pub tags: Part,
    pub wait: Part,
    /// Whether it is a half message, as it says itself.
    pub half: Part,
    /// Of a half message that is stored: its producer group, and which queue it is for.
    pub group: Part,
    pub real_topic: Part,
    pub real_queue: Part,
}

impl Values {
    fn set(&mut self, role: Role, at: usize, bytes: usize) {
        let part = Part { at: at as u32, bytes: bytes as u32 };
        match role {
            Role::UniqKey => self.uniq_key = part,
            Role::Keys => self.keys = part,
            Role::Tags => self.tags = part,
            Role::Wait => self.wait = part,
            Role::Half => self.half = part,
            Role::Group => self.group = part,
            Role::RealTopic => self.real_topic = part,
            Role::RealQueue => self.real_queue = part,
            Role::Other => {}
        }
    }

    /// Whether the sender of a message with this text waits for the confirmation.
    pub fn waits(&self, text: &[u8]) -> bool {
        !self.wait.is_there() || self.wait.of(text).eq_ignore_ascii_case(b"true")
    }

    /// Whether a message with this text is a half message.
    pub fn is_half(&self, text: &[u8]) -> bool {
        self.half.of(text).eq_ignore_ascii_case(b"true")
    }
}

/// Reads plain properties; a text with one of the touched names is not plain.
pub struct PlainProperties {
    touched: Vec<Vec<Box<[u8]>>>,
    learned: Vec<(Box<[u8]>, Role)>,
    misses: u32,
}

impl PlainProperties {
    pub fn new(names: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut touched: Vec<Vec<Box<[u8]>>> = Vec::new();
        for name in names {
            if touched.len() <= name.len() {
                touched.resize(name.len() + 1, Vec::new());
            }
            touched[name.len()].push(name.into_boxed_slice());
        }
        PlainProperties { touched, learned: Vec::new(), misses: 0 }
    }

    /// What the broker needs of a text of valid UTF-8; `None` when it is not plain.
    pub fn of(&mut self, text: &[u8]) -> Option<Values> {
        if text.len() > u32::MAX as usize {
            return None;
        }
        let mut values = Values::default();
        let mut at = 0;
        let mut learned = self.learned.iter();
        while at < text.len() {
            let value_at = match learned.next() {
                Some((name, _)) if text[at..].starts_with(name) => at + name.len(),
                _ => return self.read(text),
            };
            let role = self.learned[self.learned.len() - learned.len() - 1].1;
            let end = value_end(text, value_at)?;
            values.set(role, value_at, end - value_at);
            at = end + 1;
        }
        Some(values)
    }

    /// Does what `of` does, pair by pair.
    fn read(&mut self, text: &[u8]) -> Option<Values> {
        let mut values = Values::default();
        let mut names: Vec<&[u8]> = Vec::with_capacity(16);
        let mut at = 0;
        while at < text.len() {
            let length = memchr(1, &text[at..])?;
            let name = &text[at..at + length];
            if name.is_empty()
                || memchr(2, name).is_some()
                || names.len() >= MOST_PAIRS
                || names.contains(&name)
                || self.is_touched(name)
            {
                return None;
            }
            names.push(name);
            let value_at = at + length + 1;
            let end = value_end(text, value_at)?;
            values.set(role_of(name), value_at, end - value_at);
            at = end + 1;
        }
        self.misses += 1;
        if self.learned.is_empty() || self.misses >= MISSES_TO_LEARN {
            self.misses = 0;
            self.learned = names
                .iter()
                .map(|name| {
                    let mut beginning = name.to_vec();
                    beginning.push(1);
                    (beginning.into_boxed_slice(), role_of(name))
                })
                .collect();
        }
        Some(values)
    }

    fn is_touched(&self, name: &[u8]) -> bool {
        self.touched.get(name.len()).is_some_and(|names| names.iter().any(|touched| **touched == *name))
    }
}

/// Where a value ends that begins there; `None` if it is empty or has a separator of names in it.
fn value_end(text: &[u8], value_at: usize) -> Option<usize> {
    let end = match first_of(&text[value_at..], 1, 2) {
        Some(length) if text[value_at + length] == 2 => value_at + length,
        Some(_) => return None,
        None => text.len(),
    };
    (end > value_at).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> PlainProperties {
        PlainProperties::new([b"DELAY".to_vec(), b"TRAN_MSG".to_vec()])
    }

    #[test]
    fn values_are_found_with_and_without_learned_names() {
        let mut plain = reader();
        for text in [&b"TAGS\x01a\x02UNIQ_KEY\x01k\x02WAIT\x01FALSE\x02x\x01y\x02"[..]].repeat(3) {
            let values = plain.of(text).unwrap();
            assert_eq!(values.tags.of(text), b"a");
            assert_eq!(values.uniq_key.of(text), b"k");
            assert!(!values.keys.is_there());
            assert!(!values.waits(text));
        }
        let other = b"KEYS\x01a b\x02TAGS\x01t";
        let values = plain.of(other).unwrap();
        assert_eq!((values.keys.of(other), values.tags.of(other)), (&b"a b"[..], &b"t"[..]));
        assert!(values.waits(other));
        assert_eq!(plain.of(b""), Some(Values::default()));
    }

    #[test]
    fn what_is_not_plain_is_refused_before_and_after_learning() {
        let mut plain = reader();
        for _ in 0..2 {
            for text in [
                &b"a\x01b\x02a\x01c\x02"[..],
                b"DELAY\x013\x02",
                b"a\x01b\x02TRAN_MSG\x01true",
                b"a",
                b"a\x01\x02",
                b"\x01b\x02",
                b"a\x01b\x02\x02",
                b"\x02",
                b"a\x01b\x01c\x02",
                b"a\x02b\x01c",
                b"a\x01",
                b"a\x01b\x02c",
            ] {
                assert_eq!(plain.of(text), None, "{text:?}");
            }
            for _ in 0..20 {
                assert!(plain.of(b"a\x01b\x02").is_some());
            }
        }
    }

    #[test]
    fn half_messages_say_so_where_that_is_not_touched() {
        let mut plain = PlainProperties::new([b"DELAY".to_vec()]);
        for (text, is_half) in [
            (&b"TRAN_MSG\x01true\x02"[..], true),
            (b"UNIQ_KEY\x01k\x02TRAN_MSG\x01TRUE", true),
            (b"TRAN_MSG\x01false", false),
            (b"TRAN_MSG\x01truer", false),
            (b"a\x01true", false),
            (b"", false),
        ] {
            assert_eq!(plain.of(text).unwrap().is_half(text), is_half, "{text:?}");
            assert_eq!(reader().of(text).is_some(), !text.windows(8).any(|name| name == b"TRAN_MSG"));
        }
    }

    #[test]
    fn many_pairs_are_left_to_python() {
        let text: String = (0..65).map(|at| format!("n{at}\x01v\x02")).collect();
        assert_eq!(reader().of(text.as_bytes()), None);
        assert!(reader().of(&text.as_bytes()[..text.len() - 6]).is_some());
    }
}
