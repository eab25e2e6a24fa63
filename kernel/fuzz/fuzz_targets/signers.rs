// SPDX-License-Identifier: Apache-2.0
//! Signed requests, and what is learned and forgotten meanwhile: the input says what happens.
#![no_main]

#[path = "../rounds.rs"]
#[allow(dead_code)]
mod rounds;

use libfuzzer_sys::fuzz_target;
use rounds::signers::Signers;
use rounds::{Chance, Seen};

fuzz_target!(|data: &[u8]| {
    let (mut chance, mut signers) = (Chance::new(data, 1), Signers::new());
    for _ in 0..24 {
        signers.step(&mut chance, &mut Seen::default());
    }
});
