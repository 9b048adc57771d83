//! GRES by number: the ledger counts kinds, Slurm names them.
//!
//! A name (`gpu`) and each of its types (`gpu:a100`) are kinds of their own, and whoever has or holds one of a type has
//! or holds one of the name too. So a request for any GPU and one for an A100 are both a count of one kind.

use crate::request::GresKind;
use std::collections::BTreeMap;

/// The kinds met so far.
#[derive(Debug, Default)]
pub struct GresKinds {
    numbers: BTreeMap<(String, Option<String>), GresKind>,
}

impl GresKinds {
    /// Counts by kind, of GRES by name, type if there is one, and count: each type under its own kind and under the
    /// name's.
    pub fn count<'a>(
        &mut self,
        gres: impl IntoIterator<Item = (&'a str, Option<&'a str>, u64)>,
    ) -> Vec<(GresKind, u64)> {
        let mut counts: Vec<(GresKind, u64)> = Vec::new();
        let mut add = |kind, count| match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += count,
            None => counts.push((kind, count)),
        };
        for (name, kind, count) in gres {
            add(self.number(name, None), count);
            if kind.is_some() {
                add(self.number(name, kind), count);
            }
        }
        counts
    }

    /// The types of a name that were met so far.
    pub fn types_of(&self, name: &str) -> Vec<GresKind> {
        let typed = self.numbers.iter().filter(|((known, kind), _)| known == name && kind.is_some());
        typed.map(|(_, &number)| number).collect()
    }

    /// The number of a name, or of one of its types.
    pub fn number(&mut self, name: &str, kind: Option<&str>) -> GresKind {
        let next = GresKind(u16::try_from(self.numbers.len()).unwrap_or(u16::MAX));
        *self.numbers.entry((name.into(), kind.map(Into::into))).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_counts_for_its_name_too() {
        let mut kinds = GresKinds::default();
        let any = kinds.count([("gpu", None, 8)]);
        assert_eq!(any, [(GresKind(0), 8)]);
        let typed = kinds.count([("gpu", Some("a100"), 2), ("gpu", Some("v100"), 3)]);
        assert_eq!(typed, [(GresKind(0), 5), (GresKind(1), 2), (GresKind(2), 3)]);
    }
}
