// SPDX-License-Identifier: Apache-2.0
//! Answers to sends that were stored, made of prepared pieces.

use crate::bytes::{push_decimal, push_hexadecimal};
use crate::header::{JSON, ROCKETMQ};
use crate::run::{Command, Run};

/// The pieces of an answer around its own values, in the form that the server writes.
pub enum Pieces<'a> {
    /// Around msgId, queueId, queueOffset, transactionId and opaque; the others are for answers
    /// without a transactionId.
    Json { with_key: [&'a [u8]; 6], without_key: [&'a [u8]; 5] },
    /// Before the opaque, between that and the length of the fields, the fields that all answers have,
    /// and the names of the four others with their lengths.
    Binary { before: &'a [u8], between: &'a [u8], fields: &'a [u8], names: [&'a [u8]; 4] },
}

impl<'a> Pieces<'a> {
    /// Which form they have is told by their number; `None` for any other.
    pub fn of(pieces: &[&'a [u8]], batch: &[&'a [u8]]) -> Option<Pieces<'a>> {
        match (pieces.len(), batch.len()) {
            (6, 5) => Some(Pieces::Json {
                with_key: pieces.try_into().ok()?,
                without_key: batch.try_into().ok()?,
            }),
            (7, 0) => Some(Pieces::Binary {
                before: pieces[0],
                between: pieces[1],
                fields: pieces[2],
                names: pieces[3..].try_into().ok()?,
            }),
            _ => None,
        }
    }
}

impl Run {
    /// The answers to all requests that want one, one behind the other; `host` is the broker's
    /// address as message ids begin with it. `None` before the messages are written.
    pub fn answers(&self, pieces: &Pieces, host: &[u8]) -> Option<Vec<u8>> {
        if !self.is_written {
            return None;
        }
        let mut out = Vec::with_capacity(self.commands.len() * 320);
        for command in self.commands.iter().filter(|command| !command.oneway) {
            let frame_at = out.len();
            out.extend_from_slice(&[0; 8]);
            let kind = match pieces {
                Pieces::Json { with_key, without_key } => {
                    self.push_json(&mut out, command, with_key, without_key, host);
                    JSON
                }
                Pieces::Binary { before, between, fields, names } => {
                    let ends = (*before, *between);
                    self.push_binary(&mut out, command, ends, fields, names, host);
                    ROCKETMQ
                }
            };
            let header_bytes = (out.len() - frame_at - 8) as u32;
            let mark = u32::from(kind) << 24 | header_bytes;
            out[frame_at..frame_at + 4].copy_from_slice(&(header_bytes + 4).to_be_bytes());
            out[frame_at + 4..frame_at + 8].copy_from_slice(&mark.to_be_bytes());
        }
        Some(out)
    }

    fn push_json(
        &self,
        out: &mut Vec<u8>,
        command: &Command,
        with_key: &[&[u8]; 6],
        without_key: &[&[u8]; 5],
        host: &[u8],
    ) {
        let key = command.key.of(&self.texts);
        let pieces: &[&[u8]] = if key.is_empty() { without_key } else { with_key };
        out.extend_from_slice(pieces[0]);
        self.push_ids(out, command, host);
        out.extend_from_slice(pieces[1]);
        push_decimal(out, i64::from(command.queue_id));
        out.extend_from_slice(pieces[2]);
        push_decimal(out, self.messages[command.first as usize].queue_offset);
        out.extend_from_slice(pieces[3]);
        if !key.is_empty() {
            out.extend_from_slice(key);
            out.extend_from_slice(pieces[4]);
        }
        push_decimal(out, i64::from(command.opaque));
        out.extend_from_slice(pieces[pieces.len() - 1]);
    }

    fn push_binary(
        &self,
        out: &mut Vec<u8>,
        command: &Command,
        (before, between): (&[u8], &[u8]),
        fields: &[u8],
        names: &[&[u8]; 4],
        host: &[u8],
    ) {
        out.extend_from_slice(before);
        out.extend_from_slice(&command.opaque.to_be_bytes());
        out.extend_from_slice(between);
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(fields);
        push_field(out, names[0], |out| self.push_ids(out, command, host));
        push_field(out, names[1], |out| push_decimal(out, i64::from(command.queue_id)));
        let queue_offset = self.messages[command.first as usize].queue_offset;
        push_field(out, names[2], |out| push_decimal(out, queue_offset));
        let key = command.key.of(&self.texts);
        if !key.is_empty() {
            push_field(out, names[3], |out| out.extend_from_slice(key));
        }
        set_length(out, length_at);
    }

    fn push_ids(&self, out: &mut Vec<u8>, command: &Command, host: &[u8]) {
        let first = command.first as usize;
        for (number, message) in self.messages[first..][..command.count as usize].iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.extend_from_slice(host);
            push_hexadecimal(out, message.offset);
        }
    }
}

fn push_field(out: &mut Vec<u8>, name: &[u8], push: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(name);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    push(out);
    set_length(out, length_at);
}

/// Writes how many bytes follow a length of four bytes.
fn set_length(out: &mut [u8], length_at: usize) {
    let length = (out.len() - length_at - 4) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::json;
    use crate::run::tests::target;
    use crate::table::tests::{TEXT, entry, frame, table};

    #[test]
    fn answers_have_the_pieces_around_their_values() {
        let mut table = table();
        let mut data = frame(JSON, &json("7", "17", TEXT, "U"), b"body");
        data.extend(frame(JSON, &json("8", "17", "", "B"), &entry(b"x", b"").repeat(2)));
        let mut run = table.take(&data, 0).unwrap();
        let with_key = [&b"<"[..], b"|", b"|", b"|", b"|", b">"];
        let without_key = [&b"("[..], b";", b";", b";", b")"];
        let pieces = Pieces::of(&with_key, &without_key).unwrap();
        assert_eq!(run.answers(&pieces, b"HOST"), None);
        let mut map = vec![0; run.size_bytes as usize];
        run.write(&table, &data, &mut map, &target(0, 0x1000), &[5, 6], None).unwrap();
        let second = 0x1000 + run.queues[0].bytes;
        let third = second + run.queues[1].bytes / 2;
        let first = "<HOST0000000000001000|3|5|K1|7>".to_string();
        let other = format!("(HOST{second:016X},HOST{third:016X};0;6;8)");
        let expected = [frame(JSON, first.as_bytes(), b""), frame(JSON, other.as_bytes(), b"")];
        assert_eq!(run.answers(&pieces, b"HOST").unwrap(), expected.concat());
        let binary = [&b"B"[..], b"-", b"fields", b"i", b"q", b"o", b"t"];
        let pieces = Pieces::of(&binary, &[]).unwrap();
        let answer = run.answers(&pieces, b"HOST").unwrap();
        let mut header = b"B\0\0\0\x07-\0\0\0\x34fieldsi\0\0\0\x14HOST0000000000001000".to_vec();
        header.extend(b"q\0\0\0\x013o\0\0\0\x015t\0\0\0\x02K1");
        header[9] = (header.len() - 10) as u8;
        assert_eq!(answer[..8 + header.len()], frame(ROCKETMQ, &header, b""));
    }

    #[test]
    fn pieces_have_one_of_two_forms() {
        let piece = &b""[..];
        for (pieces, batch) in [(6, 0), (7, 5), (0, 0), (5, 6)] {
            assert!(Pieces::of(&vec![piece; pieces], &vec![piece; batch]).is_none());
        }
    }
}
