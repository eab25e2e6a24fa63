// SPDX-License-Identifier: Apache-2.0
//! The way of a message through txrocketmq, compiled: frames that are plain sends, or end their
//! transactions, their records, units, index rows and answers, and walks over records of the log.
//!
//! The broker has a form of all this in Python, which is the reference. Whatever is not taken here
//! goes that way, so there are no partial results and no errors for clients. Nothing here knows
//! topics, permissions or settings: Python decodes and checks the first header of each place, and
//! teaches the table; after that, headers are compared byte by byte, except where they may differ.
//! A signature may differ, and has to be right.
//!
//! All modules but `python` are free of `unsafe` and of Python, so their tests need neither.

pub mod answers;
pub mod bytes;
pub mod ends;
pub mod hash;
pub mod header;
pub mod json_header;
pub mod lasts;
pub mod properties;
pub mod pulls;
pub mod record;
pub mod rows;
pub mod run;
pub mod signature;
pub mod table;

#[cfg(feature = "python")]
mod python;

/// Which seam this is: Python uses the kernel only if it knows the same one.
pub const SEAM: i32 = 6;
