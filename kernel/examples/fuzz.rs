// SPDX-License-Identifier: Apache-2.0
//! Feeds the kernel with frames and logs that were changed at random, for so many seconds.
//!
//! It needs no unstable compiler and no tool, but has no sanitizer and no guidance: for both see
//! `fuzz/`, which feeds it in the same way.
//!
//! `cargo run --release --no-default-features --example fuzz -- SECONDS [SEED]`

#[path = "../fuzz/rounds.rs"]
mod rounds;

use rounds::{Chance, Seen, sends};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let seconds = arguments.next().unwrap_or(60);
    let seed = arguments.next().unwrap_or(1).max(1);
    println!("fuzz: {seconds} s from seed {seed}");
    let mut chance = Chance::new(&[], seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut seen = Seen::default();
    while Instant::now() < end {
        sends(&mut chance, 200, &mut seen);
    }
    let Seen { reads, taken, written, pulls, placed, signed, signed_pulls, ended } = seen;
    println!("fuzz: {reads} reads, {taken} requests taken, {written} records written, nothing wrong");
    println!("fuzz: {pulls} pulls taken, {placed} records found for them");
    println!(
        "fuzz: {signed} signed requests taken, of which {signed_pulls} pulls, none with a wrong signature"
    );
    assert!(
        signed - signed_pulls > reads / 50 && signed_pulls > reads / 50,
        "nothing signed was taken: this tests nothing of it"
    );
    println!("fuzz: {ended} half messages were ended");
    assert!(ended > reads / 100, "no transactions were ended: this tests nothing of them");
    assert!(pulls > reads / 50 && placed > reads / 50, "no pulls: this tests nothing of them");
    assert!(taken > reads / 50, "nearly nothing was taken: this tests nothing");
}
