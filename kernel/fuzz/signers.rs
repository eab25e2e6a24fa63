// SPDX-License-Identifier: Apache-2.0
//! Signed and unsigned sends and pulls of some accounts from some addresses, of which a part is
//! changed on the way, signed by another account, or sent from elsewhere. Places are learned
//! meanwhile, and all of them are forgotten at times, as when a password changes.
//!
//! What has to be true is told by a model: whatever is taken has a place that was learned for its
//! origin since all were forgotten, and what is signed of it is what the account of that place has
//! signed. And what was learned and not changed is taken.

use super::{Chance, Seen, TEXTS, framed, teaching};
use std::collections::HashMap;
use txrocketmq_kernel::header::{JSON, Names, PULLS, ROCKETMQ, SENDS, Value, found_in, key_of};
use txrocketmq_kernel::json_header::unescape;
use txrocketmq_kernel::pulls::Pulls;
use txrocketmq_kernel::record::MAGIC_V1;
use txrocketmq_kernel::signature::{Accounts, SIGNATURE_BYTES};
use txrocketmq_kernel::table::Table;

const KEYS: [[u8; 64]; 2] = [[b'k'; 64], [b'K'; 64]];
const NAMES: [&[u8]; 2] = [b"me", b"another"];
/// The origins of the addresses from which requests come; 0 for those that nobody has to sign.
const ORIGINS: [u64; 4] = [7, 7, 8, 0];
/// Those of the texts of properties that a table takes.
const PLAIN: [usize; 4] = [0, 1, 4, 6];

/// A request as its client has sent it.
struct Request {
    is_pull: bool,
    kind: u8,
    header: Vec<u8>,
    body: Vec<u8>,
    /// By whom it says to be, and who has signed it; `None` for one that nobody has signed.
    account: Option<(usize, usize)>,
    /// Whether its properties are such that it is taken once its place is known.
    is_plain: bool,
}

impl Request {
    fn names(&self) -> &'static Names {
        if self.is_pull { &PULLS } else { &SENDS }
    }

    fn frame(&self) -> Vec<u8> {
        framed(self.kind, &self.header, &self.body)
    }

    /// What makes its place, whoever learns it.
    fn place(&self, origin: u64) -> Option<(bool, u64, Vec<u8>)> {
        Some((self.is_pull, origin, key_of(self.kind, &self.header, self.names())?))
    }

    /// The values of its fields in the order of their names, and its body.
    fn signed_values(&self) -> Option<Vec<u8>> {
        let mut fields = found_in(self.kind, &self.header, self.names())?.fields;
        fields.sort_by_key(|field| self.header[field.name.clone()].to_vec());
        let mut values = Vec::new();
        for field in fields.iter().filter(|field| field.value != Value::Signature) {
            if self.kind == JSON {
                unescape(&self.header[field.place.start..], &mut values)?;
            } else {
                values.extend(&self.header[field.place.start + 4..field.place.end]);
            }
        }
        values.extend(&self.body);
        Some(values)
    }

    /// The same with perhaps something changed.
    fn on_its_way(&self, chance: &mut Chance) -> Request {
        let (mut header, mut body) = (self.header.clone(), self.body.clone());
        if chance.below(3) == 0 {
            chance.change(&mut header);
        }
        if chance.below(4) == 0 {
            chance.change(&mut body);
        }
        Request { header, body, ..*self }
    }
}

/// A send or a pull with fields in any order, which is signed by one of the accounts, or by none.
fn request(chance: &mut Chance) -> Request {
    let is_pull = chance.below(2) == 0;
    let kind = [JSON, ROCKETMQ][chance.below(2)];
    let text = chance.below(TEXTS.len());
    let digits = chance.below(1 << 40).to_string();
    let topic: &[u8] = [b"T", b"U"][chance.below(2)];
    let mut fields: Vec<(&[u8], &[u8])> = if is_pull {
        vec![(b"topic", topic), (b"queueOffset", digits.as_bytes()), (b"commitOffset", b"05")]
    } else {
        vec![(b"b", topic), (b"g", digits.as_bytes()), (b"i", TEXTS[text])]
    };
    let body = if is_pull { Vec::new() } else { vec![b'x'; 1 + chance.below(200)] };
    let claimed = chance.below(2);
    let signer = if chance.below(5) == 0 { 1 - claimed } else { claimed };
    let account = (chance.below(4) > 0).then_some((claimed, signer));
    let signature;
    if account.is_some() {
        fields.push((b"AccessKey", NAMES[claimed]));
        fields.sort();
        let mut signed: Vec<u8> = fields.iter().flat_map(|field| field.1).copied().collect();
        signed.extend(&body);
        let mut accounts = Accounts::default();
        let number = accounts.add(&KEYS[signer]).expect("a key");
        signature = accounts.signature(number, &signed).expect("an account");
        assert_eq!(signature.len(), SIGNATURE_BYTES);
        fields.push((b"Signature", &signature));
    }
    let first = chance.below(fields.len());
    fields.rotate_left(first);
    let opaque = chance.below(1 << 31) as u32;
    let header = if kind == JSON { json(&fields, opaque) } else { binary(&fields, opaque) };
    Request { is_pull, kind, header, body, account, is_plain: is_pull || PLAIN.contains(&text) }
}

fn json(fields: &[(&[u8], &[u8])], opaque: u32) -> Vec<u8> {
    let member = |(name, value): &(&[u8], &[u8])| {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        format!("\"{name}\":\"{value}\"").replace('\x01', "\\u0001").replace('\x02', "\\u0002")
    };
    let members: Vec<String> = fields.iter().map(member).collect();
    format!("{{\"code\":10,\"extFields\":{{{}}},\"opaque\":{opaque}}}", members.join(",")).into_bytes()
}

fn binary(fields: &[(&[u8], &[u8])], opaque: u32) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, value) in fields {
        packed.extend((name.len() as u16).to_be_bytes());
        packed.extend(*name);
        packed.extend((value.len() as u32).to_be_bytes());
        packed.extend(*value);
    }
    let mut header = vec![1, 54, 0, 1, 145];
    header.extend(opaque.to_be_bytes());
    header.extend([0; 8]);
    header.extend((packed.len() as u32).to_be_bytes());
    header.extend(packed);
    header
}

/// The kernel, and what is known of it.
pub struct Signers {
    table: Table,
    pulls: Pulls,
    /// The accounts of the places that were learned.
    places: HashMap<(bool, u64, Vec<u8>), Option<usize>>,
}

impl Signers {
    pub fn new() -> Signers {
        let mut table = Table::new(vec![b"DELAY".to_vec(), b"TRAN_MSG".to_vec()], vec![], vec![], vec![]);
        table.add_queue(b"\x01T", MAGIC_V1, 0).expect("a topic");
        let mut signers = Signers { table, pulls: Pulls::default(), places: HashMap::new() };
        signers.add_accounts();
        signers
    }

    fn add_accounts(&mut self) {
        for (number, key) in (0..).zip(KEYS) {
            assert_eq!(self.table.add_account(&key), Some(number));
            assert_eq!(self.pulls.add_account(&key), Some(number));
        }
    }

    /// Something that happens.
    pub fn step(&mut self, chance: &mut Chance, seen: &mut Seen) {
        match chance.below(64) {
            0 => {
                self.table.wipe();
                self.pulls.wipe();
                self.places.clear();
                assert!(!self.learn(&request(chance), 7, Some(0)), "its account was forgotten");
                self.add_accounts();
            }
            1..16 => {
                let asked = request(chance).on_its_way(chance);
                let account = [Some(0), Some(1), Some(2), None][chance.below(4)];
                self.learn(&asked, ORIGINS[chance.below(4)], account);
            }
            16..26 => {
                let asked = request(chance);
                let (origin, account) = match asked.account {
                    Some((claimed, _)) => (7, Some(claimed as u32)),
                    None => (0, None),
                };
                assert!(self.learn(&asked, origin, account) || !asked.is_plain);
            }
            _ => self.take(chance, seen),
        }
    }

    /// Learns the place of a request, which need not be signed as it should be: that is for whoever
    /// teaches to see.
    fn learn(&mut self, asked: &Request, origin: u64, account: Option<u32>) -> bool {
        let is_known = if asked.is_pull {
            self.pulls.learn(asked.kind, &asked.header, origin, account).is_some()
        } else {
            self.table.learn(asked.kind, &asked.header, teaching(0, false), origin, account)
        };
        if is_known {
            assert_eq!(account.is_some(), origin != 0);
            assert!(account.is_none_or(|account| account < 2));
            let place = asked.place(origin).expect("a key");
            self.places.entry(place).or_insert(account.map(|account| account as usize));
        }
        is_known
    }

    /// Some requests in one read from an origin.
    fn take(&mut self, chance: &mut Chance, seen: &mut Seen) {
        let origin = ORIGINS[chance.below(4)];
        let sent: Vec<Request> = (0..1 + chance.below(4)).map(|_| request(chance)).collect();
        let come: Vec<Request> = sent.iter().map(|one| one.on_its_way(chance)).collect();
        let data: Vec<u8> = come.iter().flat_map(Request::frame).collect();
        let (mut at, mut run_end) = (0, 0);
        for (one, other) in sent.iter().zip(&come) {
            let end = at + other.frame().len();
            let is_taken = if other.is_pull {
                let found = self.pulls.take(&data, at, origin);
                assert!(found.is_none_or(|found| found.end == end));
                found.is_some()
            } else if at < run_end {
                true
            } else {
                let run = self.table.take(&data[at..], origin);
                run_end = run.as_ref().map_or(0, |run| at + run.at);
                run.is_some()
            };
            assert!(run_end <= at || run_end >= end, "requests are taken whole");
            self.check(one, other, origin, is_taken);
            seen.signed += u64::from(is_taken && other.account.is_some());
            seen.signed_pulls += u64::from(is_taken && other.account.is_some() && other.is_pull);
            at = end;
        }
    }

    /// Holds what has to be true of a request that has come as another one.
    fn check(&self, sent: &Request, come: &Request, origin: u64, is_taken: bool) {
        let place = come.place(origin);
        let of_place = place.and_then(|place| self.places.get(&place));
        if is_taken {
            let account = *of_place.expect("its place was learned");
            if let Some(account) = account {
                let (_, signer) = sent.account.expect("it was signed");
                assert_eq!(account, signer);
                assert_eq!(come.signed_values(), sent.signed_values());
            }
        } else if come.header == sent.header && come.body == sent.body && come.is_plain {
            let is_right = |account: &Option<usize>| match (*account, sent.account) {
                (Some(account), Some((_, signer))) => account == signer,
                (account, _) => account.is_none(),
            };
            assert!(!of_place.is_some_and(is_right), "what was learned is taken");
        }
    }
}
