// SPDX-License-Identifier: Apache-2.0
//! Frames like those of clients, into which the input says what to change.
#![no_main]

#[path = "../rounds.rs"]
mod rounds;

use libfuzzer_sys::fuzz_target;
use rounds::{Chance, Seen, sends};

fuzz_target!(|data: &[u8]| sends(&mut Chance::new(data, 1), 4, &mut Seen::default()));
