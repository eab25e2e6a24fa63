// SPDX-License-Identifier: Apache-2.0
//! Big-endian integers in slices. Whoever calls has checked the lengths; a mistake is a panic, which
//! the entries catch, and never a read outside the slice.

pub fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(data[at..at + 2].try_into().unwrap())
}

pub fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(data[at..at + 4].try_into().unwrap())
}

pub fn i32_at(data: &[u8], at: usize) -> i32 {
    u32_at(data, at) as i32
}

pub fn i64_at(data: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(data[at..at + 8].try_into().unwrap())
}

/// The highest bit of each byte of a word.
pub const EVERY: u64 = 0x8080_8080_8080_8080;
/// The lowest one.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Has the highest bit of the lowest byte that is less than this one, which is no more than 128;
/// what is set above that bit, or besides the highest bits, means nothing.
pub fn below(word: u64, most: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(most)) & !word
}

/// The same of the lowest byte that is equal to this one.
pub fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Where the first of two bytes is. For texts of some bytes it takes less than a search that is
/// prepared for long ones.
pub fn first_of(text: &[u8], one: u8, other: u8) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = text.get(at..at + 8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap());
        let found = EVERY & (equal(word, one) | equal(word, other));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    text[at..].iter().position(|byte| *byte == one || *byte == other).map(|length| at + length)
}

/// Writes values one behind the other into a slice.
pub struct Cursor<'a> {
    data: &'a mut [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a mut [u8], at: usize) -> Self {
        Cursor { data, at }
    }

    pub fn bytes(&mut self, value: &[u8]) {
        let end = self.at + value.len();
        self.data[self.at..end].copy_from_slice(value);
        self.at = end;
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }
}

/// Appends a number in decimal digits.
pub fn push_decimal(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number as sixteen hexadecimal digits in upper case.
pub fn push_hexadecimal(out: &mut Vec<u8>, value: i64) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = [0u8; 16];
    for (at, digit) in text.iter_mut().enumerate() {
        *digit = DIGITS[(value >> (60 - 4 * at) & 15) as usize];
    }
    out.extend_from_slice(&text);
}

/// The number that digits make: `None` for none, for more than `most`, and for other characters.
pub fn decimal(text: &[u8], most: usize) -> Option<i64> {
    if text.is_empty() || text.len() > most.min(18) {
        return None;
    }
    let mut value = 0i64;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_texts() {
        let mut out = Vec::new();
        for value in [0, 7, -1, 1_234_567_890, i64::MAX, i64::MIN] {
            out.clear();
            push_decimal(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
            out.clear();
            push_hexadecimal(&mut out, value);
            assert_eq!(out, format!("{value:016X}").as_bytes());
        }
    }

    #[test]
    fn the_first_of_two_bytes_is_found_wherever_it_is() {
        for length in 0..40 {
            for at in 0..=length {
                for mark in [1, 2] {
                    let mut text: Vec<u8> =
                        (0..length).map(|at| [0, 3, 0x81, 0x82, 0xff][at % 5]).collect();
                    text.splice(at.., [mark, 1, 2].into_iter().take(length - at));
                    let meant = text.iter().position(|byte| *byte == 1 || *byte == 2);
                    assert_eq!(first_of(&text, 1, 2), meant, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn only_digits_make_a_number() {
        assert_eq!(decimal(b"0012", 18), Some(12));
        assert_eq!(decimal(b"999999999999999999", 18), Some(999_999_999_999_999_999));
        for wrong in [&b""[..], b"-1", b"1 ", b"1234567890123456789", b"\xd9\xa1"] {
            assert_eq!(decimal(wrong, 18), None);
        }
        assert_eq!(decimal(b"123", 2), None);
    }
}
