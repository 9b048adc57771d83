//! What a user wishes for, where Slurm has no option for it: `--comment=lockstep:level=rack,segment=4`.
//!
//! The wish may stand among other words of the comment, apart from them by a blank or `;`.

use super::{Mode, Reach};

/// What a comment wishes for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// `level=`: up to which level the gang may spread.
    pub reach: Option<Reach>,
    /// `mode=`: `required` or `preferred`.
    pub mode: Option<Mode>,
    /// `segment=`: nodes a segment.
    pub segment: Option<u32>,
}

const MARK: &str = "lockstep:";

impl Wish {
    /// Reads the comment of a job; a comment without a wish wishes for nothing.
    ///
    /// # Errors
    /// The wish is malformed; in words.
    pub fn parse(comment: &str) -> Result<Self, String> {
        let mut wish = Self::default();
        let parts = comment.split([' ', '\t', '\n', ';']);
        for part in parts.filter_map(|part| part.strip_prefix(MARK)) {
            for pair in part.split(',').filter(|pair| !pair.is_empty()) {
                let (key, value) = pair
                    .split_once('=')
                    .filter(|(_, value)| !value.is_empty())
                    .ok_or_else(|| format!("`{pair}` is no wish: write key=value"))?;
                match key {
                    "level" => {
                        wish.reach = Some(match (value, value.parse()) {
                            ("home", _) => Reach::Home,
                            (_, Ok(level)) => Reach::Level(level),
                            (name, _) => Reach::Named(name.into()),
                        });
                    }
                    "mode" => {
                        wish.mode = Some(match value {
                            "required" => Mode::Required,
                            "preferred" => Mode::Preferred,
                            other => {
                                return Err(format!("mode `{other}` is neither required nor preferred"));
                            }
                        });
                    }
                    "segment" => {
                        let segment = value.parse().ok().filter(|&nodes| nodes > 0);
                        wish.segment =
                            Some(segment.ok_or_else(|| format!("segment `{value}` is no number of nodes"))?);
                    }
                    other => return Err(format!("`{other}` is none of level, mode and segment")),
                }
            }
        }
        Ok(wish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_stands_among_other_words() {
        assert_eq!(Wish::parse(""), Ok(Wish::default()));
        assert_eq!(Wish::parse("run 7; lockstep is nice"), Ok(Wish::default()));
        let wish = Wish::parse("run 7;lockstep:level=rack,segment=4,mode=required").unwrap();
        let rack = Some(Reach::Named("rack".into()));
        assert_eq!(wish, Wish { reach: rack, mode: Some(Mode::Required), segment: Some(4) });
        assert_eq!(Wish::parse("lockstep:level=1").unwrap().reach, Some(Reach::Level(1)));
        assert_eq!(Wish::parse("lockstep:level=home").unwrap().reach, Some(Reach::Home));
    }

    #[test]
    fn a_malformed_wish_says_what_is_wrong() {
        let wishes = ["level", "level=", "segment=0", "segment=x", "mode=off", "levl=1"];
        let faults = wishes.map(|wish| Wish::parse(&format!("lockstep:{wish}")).unwrap_err());
        insta::assert_snapshot!(faults.join("\n"), @r#"
        `level` is no wish: write key=value
        `level=` is no wish: write key=value
        segment `0` is no number of nodes
        segment `x` is no number of nodes
        mode `off` is neither required nor preferred
        `levl` is none of level, mode and segment
        "#);
    }
}
