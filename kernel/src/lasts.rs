// SPDX-License-Identifier: Apache-2.0
//! The place of what came last from each origin. Mostly the same origin comes again, or there is only
//! one, so that of the latest is at hand without a look-up.

use std::collections::HashMap;

#[derive(Default)]
pub struct Lasts {
    origin: u64,
    place: Option<usize>,
    others: HashMap<u64, usize>,
}

impl Lasts {
    /// The place of what came last from an origin; that is the latest now.
    pub fn of(&mut self, origin: u64) -> Option<usize> {
        if origin != self.origin {
            if let Some(place) = self.place {
                self.others.insert(self.origin, place);
            }
            (self.origin, self.place) = (origin, self.others.get(&origin).copied());
        }
        self.place
    }

    /// Notes the place of what came from the latest origin.
    pub fn set(&mut self, place: usize) {
        self.place = Some(place);
    }

    pub fn clear(&mut self) {
        self.place = None;
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_a_last_place() {
        let mut lasts = Lasts::default();
        assert_eq!(lasts.of(0), None);
        lasts.set(3);
        assert_eq!((lasts.of(0), lasts.of(7)), (Some(3), None));
        assert_eq!((lasts.of(8), lasts.of(0)), (None, Some(3)));
        lasts.of(7);
        lasts.set(4);
        lasts.set(5);
        assert_eq!((lasts.of(0), lasts.of(7), lasts.of(8)), (Some(3), Some(5), None));
        lasts.clear();
        assert_eq!((lasts.of(8), lasts.of(7), lasts.of(0)), (None, None, None));
    }
}
