// SPDX-License-Identifier: Apache-2.0
//! Java's `String.hashCode()`, computed from UTF-16 code units, and the number that indexes keep.

const P1: u32 = 31;
const P2: u32 = 31 * 31;
const P3: u32 = P2 * 31;
const P4: u32 = P3.wrapping_mul(31);

/// Continues the hash of a text by another text, which is valid UTF-8.
pub fn continued(hash: u32, text: &[u8]) -> u32 {
    if text.is_ascii() {
        return continued_ascii(hash, text);
    }
    let mut hash = hash;
    for unit in String::from_utf8_lossy(text).encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(u32::from(unit));
    }
    hash
}

fn continued_ascii(mut hash: u32, text: &[u8]) -> u32 {
    // Four characters at a time, so that multiplications need not wait for one another.
    let mut fours = text.chunks_exact(4);
    for four in &mut fours {
        let tail = u32::from(four[0])
            .wrapping_mul(P3)
            .wrapping_add(u32::from(four[1]).wrapping_mul(P2))
            .wrapping_add(u32::from(four[2]).wrapping_mul(P1))
            .wrapping_add(u32::from(four[3]));
        hash = hash.wrapping_mul(P4).wrapping_add(tail);
    }
    for byte in fours.remainder() {
        hash = hash.wrapping_mul(31).wrapping_add(u32::from(*byte));
    }
    hash
}

/// What a queue has of a tag: its hash with a sign.
pub fn tags_code(tags: &[u8]) -> i64 {
    i64::from(continued(0, tags) as i32)
}

/// Math.abs of a hash; 0 for the one integer that has no positive counterpart.
pub fn positive(hash: u32) -> i32 {
    (hash as i32).checked_abs().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(tags_code(b""), 0);
        assert_eq!(tags_code(b"TagA"), 2_598_919);
        assert_eq!(tags_code(b"polygenelubricants"), i64::from(i32::MIN));
        assert_eq!(tags_code("é😀".as_bytes()), {
            let units: Vec<u16> = "é😀".encode_utf16().collect();
            let hash =
                units.iter().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(*unit)));
            i64::from(hash as i32)
        });
        assert_eq!(positive(0x8000_0000), 0);
        assert_eq!(positive(0xffff_ffff), 1);
    }

    #[test]
    fn a_hash_is_continued() {
        let whole = b"topic#0123456789ABCDEF";
        for cut in 0..whole.len() {
            assert_eq!(continued(continued(0, &whole[..cut]), &whole[cut..]), continued(0, whole));
        }
    }
}
