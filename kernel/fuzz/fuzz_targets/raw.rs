// SPDX-License-Identifier: Apache-2.0
//! Any bytes, as headers, reads and logs.
#![no_main]

#[path = "../rounds.rs"]
#[allow(dead_code)]
mod rounds;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rounds::raw(data));
