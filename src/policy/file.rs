//! `lockstep.toml`: what the site has decided, beside slurm.conf.
//!
//! Unknown keys, wrong types and impossible values are errors with line and column: a rule that is misspelt must not
//! be a rule that is silently off.

use super::{Match, Mode, Policy, Reach, Rule};
use crate::fabric::diagnostic::{Diagnostic, Place, codes};
use crate::fabric::draft::Names;
use crate::fabric::hostlist::Dialect;
use crate::fabric::tree::Level;
use crate::placement::mix::Mix;
use crate::request::Time;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

codes! {
    /// The codes of this module.
    CODES;
    INVALID = "P001" Error "lockstep.toml has a fault";
}

const HINT: &str = "docs/configuration.md lists the keys";

/// The file as it is written.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    fabric: FabricTable,
    default: Options,
    mix: BTreeMap<String, Spanned<u64>>,
    levels: BTreeMap<String, Spanned<Level>>,
    rule: Vec<RuleTable>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct FabricTable {
    exclude: Vec<Spanned<String>>,
}

/// What `[default]` may say.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Options {
    mode: Option<Mode>,
    level: Option<Spanned<LevelText>>,
    widen_after: Option<Spanned<Seconds>>,
    max_excess: Option<Spanned<Excess>>,
    elastic: Option<bool>,
    same_gpu_type: Option<bool>,
}

/// What a `[[rule]]` may say: the same, and whom it is for.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct RuleTable {
    #[serde(rename = "match")]
    matches: MatchTable,
    mode: Option<Mode>,
    level: Option<Spanned<LevelText>>,
    widen_after: Option<Spanned<Seconds>>,
    max_excess: Option<Spanned<Excess>>,
    elastic: Option<bool>,
    same_gpu_type: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct MatchTable {
    partition: NameList,
    qos: NameList,
    account: NameList,
    min_nodes: u32,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a name or a list of names")]
enum NameList {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"home\", the number of a level, or its name")]
enum LevelText {
    Number(Level),
    Name(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a time such as \"10m\" or \"1h 30m\", or seconds")]
enum Seconds {
    Number(u32),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"any\" or a number of leaves")]
enum Excess {
    Number(u32),
    Text(String),
}

impl Default for NameList {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<NameList> for Vec<String> {
    fn from(names: NameList) -> Self {
        match names {
            NameList::One(name) => vec![name],
            NameList::Many(names) => names,
        }
    }
}

impl Policy {
    /// Reads the text of `lockstep.toml`; `path` is for messages only.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn parse(text: &str, path: &Path, dialect: Dialect) -> Result<Self, Diagnostic> {
        let at = |span| place(text, path, span);
        let file: File = toml::from_str(text).map_err(|error| {
            Diagnostic::new(INVALID, at(error.span().unwrap_or_default()), error.message(), HINT)
        })?;
        let mut names = Names::new(dialect);
        let mut exclude = Vec::new();
        for list in &file.fabric.exclude {
            let start = at(list.span());
            // The column counts from the opening quote.
            let at = |column: usize| Place { column: start.column + column as u32, ..start.clone() };
            exclude.extend(names.expand(list.get_ref(), at)?);
        }
        let mut gangs = Vec::new();
        for (nodes, weight) in &file.mix {
            let size = nodes.parse().ok().filter(|&nodes: &u32| nodes > 0).ok_or_else(|| {
                let what = format!("`{nodes}` is no number of nodes");
                Diagnostic::new(
                    INVALID,
                    at(weight.span()),
                    what,
                    "write a size and its weight, such as `8 = 3`",
                )
            })?;
            gangs.push((size, *weight.get_ref()));
        }
        let default = file.default.over(&Rule::default(), at)?;
        let rules = file.rule.into_iter().map(|rule| rule.over(&default, at)).collect::<Result<_, _>>()?;
        let levels = file.levels.into_iter().map(|(name, level)| {
            let place = at(level.span());
            (name, (level.into_inner(), place))
        });
        Ok(Self {
            exclude,
            mix: (!gangs.is_empty()).then(|| Mix::new(gangs, [])),
            levels: levels.collect(),
            rules,
            default,
        })
    }
}

impl RuleTable {
    fn over(self, default: &Rule, at: impl Fn(Range<usize>) -> Place) -> Result<(Match, Rule), Diagnostic> {
        let Self { matches, mode, level, widen_after, max_excess, elastic, same_gpu_type } = self;
        let matches = Match {
            partitions: matches.partition.into(),
            qos: matches.qos.into(),
            accounts: matches.account.into(),
            min_nodes: matches.min_nodes,
        };
        let options = Options { mode, level, widen_after, max_excess, elastic, same_gpu_type };
        Ok((matches, options.over(default, at)?))
    }
}

impl Options {
    /// What is said here over what is said in a rule.
    fn over(self, rule: &Rule, at: impl Fn(Range<usize>) -> Place) -> Result<Rule, Diagnostic> {
        let mut rule = rule.clone();
        let fault = |span, what: String| Err(Diagnostic::new(INVALID, at(span), what, HINT));
        rule.mode = self.mode.unwrap_or(rule.mode);
        if let Some(level) = self.level {
            rule.place = Some(at(level.span()));
            rule.reach = match level.into_inner() {
                LevelText::Number(level) => Reach::Level(level),
                LevelText::Name(name) if name == "home" => Reach::Home,
                LevelText::Name(name) => Reach::Named(name),
            };
        }
        if let Some(time) = self.widen_after {
            rule.widen_after = match time.get_ref() {
                Seconds::Number(seconds) => Time::from(*seconds),
                Seconds::Text(text) => match humantime::parse_duration(text) {
                    Ok(time) => Time::try_from(time.as_secs()).unwrap_or(Time::MAX),
                    Err(error) => return fault(time.span(), format!("`{text}` is no time: {error}")),
                },
            };
        }
        if let Some(excess) = self.max_excess {
            rule.max_excess = match excess.get_ref() {
                Excess::Number(leaves) => Some(*leaves),
                Excess::Text(text) if text == "any" => None,
                Excess::Text(text) => {
                    return fault(
                        excess.span(),
                        format!("`{text}` is neither \"any\" nor a number of leaves"),
                    );
                }
            };
        }
        rule.elastic = self.elastic.unwrap_or(rule.elastic);
        rule.mixed_gpu_types = self.same_gpu_type.map_or(rule.mixed_gpu_types, |same| !same);
        Ok(rule)
    }
}

/// The line and column of a byte range of the text.
fn place(text: &str, path: &Path, span: Range<usize>) -> Place {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() as u32 + 1;
    Place { file: path.into(), line, column: before[line_start..].chars().count() as u32 + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::*;
    use crate::placement::tests::fabric;

    fn parse(text: &str) -> Result<Policy, String> {
        Policy::parse(text, Path::new("lockstep.toml"), Dialect::default()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_exclude_list_is_hostlists() {
        assert_eq!(parse("").unwrap(), Policy::default());
        let policy = parse("[fabric]\nexclude = ['storage[1-2]', 'mgmt,top']\n").unwrap();
        assert_eq!(policy.exclude, ["storage1", "storage2", "mgmt", "top"]);
    }

    #[test]
    fn the_first_rule_that_matches_counts_and_inherits_the_default() {
        let mut policy = parse(
            "[default]\nlevel = 1\nwiden_after = '1h 30m'\n[mix]\n8 = 3\n[levels]\nrack = 0\n\
             [[rule]]\nmatch = { partition = ['train', 'big'], min_nodes = 4 }\nlevel = 'rack'\nmax_excess = 0\n\
             [[rule]]\nmatch = { account = 'a', qos = 'q' }\nmode = 'observe'\nlevel = 'spine'\nelastic = true\n",
        )
        .unwrap();
        assert_eq!(policy.settle(&fabric(&[&[4, 4], &[4, 4]])), Ok(()));
        let rule =
            |partition, qos, account, nodes| policy.rule(Subject { partition, qos, account, nodes }).clone();
        let train = rule("train", "", "", 4);
        assert_eq!((train.reach, train.max_excess, train.widen_after), (Reach::Level(0), Some(0), 5400));
        let other = rule("train", "", "", 3);
        assert_eq!((other.mode, other.reach), (Mode::Required, Reach::Level(1)));
        let watched = rule("train", "q", "a", 1);
        assert_eq!((watched.mode, watched.reach, watched.elastic), (Mode::Observe, Reach::Level(1), true));
        assert_eq!(policy.mix, Some(Mix::new([(8, 3)], [])));
        assert_eq!(policy.name_of(0), Some("rack"));
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        let texts = [
            "[fabric]\nexclud = []",
            "[fabric]\nexclude = 'storage'",
            "[fabric]\nexclude = [\n  'é[1',\n]",
            "[fabrik]",
            "x = ",
            "[fabric",
            "[default]\nmode = 'strict'",
            "[default]\nmatch = { partition = 'a' }",
            "[default]\nlevel = -1",
            "[default]\nlevel = 1.5",
            "[default]\nwiden_after = 'soon'",
            "[default]\nmax_excess = 'some'",
            "[default]\nelastic = 'yes'",
            "[mix]\n8 = 1\nx = 2",
            "[mix]\n8 = -1",
            "[[rule]]\nmatch = { partitions = 'a' }",
            "[[rule]]\nmatch = { min_nodes = 'a' }",
        ];
        insta::assert_snapshot!(texts.map(|text| parse(text).unwrap_err()).join("\n"), @r#"
        lockstep.toml:2:1: error[P001]: unknown field `exclud`, expected `exclude`; docs/configuration.md lists the keys
        lockstep.toml:2:11: error[P001]: invalid type: string "storage", expected a sequence; docs/configuration.md lists the keys
        lockstep.toml:3:5: error[T004]: `[` is never closed; add the missing `]`
        lockstep.toml:1:2: error[P001]: unknown field `fabrik`, expected one of `fabric`, `default`, `mix`, `levels`, `rule`; docs/configuration.md lists the keys
        lockstep.toml:1:5: error[P001]: string values must be quoted, expected literal string; docs/configuration.md lists the keys
        lockstep.toml:1:8: error[P001]: unclosed table, expected `]`; docs/configuration.md lists the keys
        lockstep.toml:2:8: error[P001]: unknown variant `strict`, expected one of `off`, `observe`, `preferred`, `required`; docs/configuration.md lists the keys
        lockstep.toml:2:1: error[P001]: unknown field `match`, expected one of `mode`, `level`, `widen_after`, `max_excess`, `elastic`, `same_gpu_type`; docs/configuration.md lists the keys
        lockstep.toml:2:9: error[P001]: expected "home", the number of a level, or its name; docs/configuration.md lists the keys
        lockstep.toml:2:9: error[P001]: expected "home", the number of a level, or its name; docs/configuration.md lists the keys
        lockstep.toml:2:15: error[P001]: `soon` is no time: expected number at 0; docs/configuration.md lists the keys
        lockstep.toml:2:14: error[P001]: `some` is neither "any" nor a number of leaves; docs/configuration.md lists the keys
        lockstep.toml:2:11: error[P001]: invalid type: string "yes", expected a boolean; docs/configuration.md lists the keys
        lockstep.toml:3:5: error[P001]: `x` is no number of nodes; write a size and its weight, such as `8 = 3`
        lockstep.toml:2:5: error[P001]: invalid value: integer `-1`, expected u64; docs/configuration.md lists the keys
        lockstep.toml:2:11: error[P001]: unknown field `partitions`, expected one of `partition`, `qos`, `account`, `min_nodes`; docs/configuration.md lists the keys
        lockstep.toml:2:23: error[P001]: invalid type: string "a", expected u32; docs/configuration.md lists the keys
        "#);
    }

    #[test]
    fn a_level_that_the_fabric_does_not_have_is_named_with_its_place() {
        let fabric = fabric(&[&[4, 4], &[4, 4]]);
        let texts = [
            "[default]\nlevel = 2",
            "[default]\nlevel = 'rack'",
            "[levels]\nrack = 7",
            "[[rule]]\nmode = 'off'\n[[rule]]\nlevel = ''",
        ];
        let faults = texts.map(|text| parse(text).unwrap().settle(&fabric).unwrap_err().to_string());
        insta::assert_snapshot!(faults.join("\n"), @r#"
        lockstep.toml:2:9: error[P002]: there is no level 2; the fabric has levels 0 to 1; `lockstep topo` shows the fabric's levels
        lockstep.toml:2:9: error[P002]: there is no level `rack`: it stands under no [levels], and no switch's name begins with it; `lockstep topo` shows the fabric's levels
        lockstep.toml:2:8: error[P002]: level `rack` is 7, but the fabric has levels 0 to 1; `lockstep topo` shows the fabric's levels
        lockstep.toml:4:9: error[P002]: switches whose names begin with `` are on several levels; `lockstep topo` shows the fabric's levels
        "#);
    }
}
