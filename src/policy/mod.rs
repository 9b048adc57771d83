//! What the site has decided, and what a user may wish: the rule that a job falls under.
//!
//! [`file`] reads `lockstep.toml`, [`wish`] the part of a job's comment that is meant for Lockstep. Here they become
//! [`Terms`]: how strictly a gang is kept together, up to which level it may spread and after which wait, whether it may
//! start smaller. A wish can tighten what the site's rule says, never loosen it.

pub mod file;
pub mod wish;

use crate::fabric::diagnostic::{Diagnostic, Place, codes};
use crate::fabric::tree::{Fabric, Level};
use crate::placement::mix::Mix;
use crate::request::Time;
use serde::Deserialize;
use std::collections::BTreeMap;
use wish::Wish;

codes! {
    /// The codes of this module.
    CODES;
    UNKNOWN_LEVEL = "P002" Error "lockstep.toml names a level that the fabric does not have";
}

/// A site's policy. The default is that of a site without lockstep.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Switches that are no part of the compute fabric.
    pub exclude: Vec<String>,
    /// The gangs to keep room for; none leaves it to what was submitted.
    pub mix: Option<Mix>,
    levels: BTreeMap<String, (Level, Place)>,
    rules: Vec<(Match, Rule)>,
    default: Rule,
}

/// How strictly gangs are kept together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Lockstep leaves the job to Slurm.
    Off,
    /// Slurm decides; Lockstep counts where it would have decided otherwise.
    Observe,
    /// Neighbouring nodes where there are some in time, others where not.
    Preferred,
    /// Neighbouring nodes or none.
    #[default]
    Required,
}

/// Up to which level a gang may spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The gang's home level.
    #[default]
    Home,
    /// A level by its number.
    Level(Level),
    /// A level by a name from `[levels]`, or by how the names of its switches begin.
    Named(String),
}

/// What holds for the jobs that a rule matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// How strictly gangs are kept together.
    pub mode: Mode,
    /// Up to which level a gang may spread. A gang that no domain of that level could hold has its home level.
    pub reach: Reach,
    /// After how many seconds of waiting the next level up is allowed, and again after as many. 0: at once for a preferred
    /// gang, never for any other.
    pub widen_after: Time,
    /// How many leaves more than needed a gang may sit on; none: any number.
    pub max_excess: Option<u32>,
    /// Whether a gang that asks for a range of nodes gets the most that fit, in place of the larger number.
    pub elastic: bool,
    /// Whether all GPUs of a gang that names no type are of one type; by default they are.
    pub mixed_gpu_types: bool,
    /// Where the level is named.
    place: Option<Place>,
}

/// Which jobs a rule is for. What is not given matches any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Match {
    partitions: Vec<String>,
    qos: Vec<String>,
    accounts: Vec<String>,
    min_nodes: u32,
}

/// What rules look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The partition under test.
    pub partition: &'a str,
    /// The job's QOS; empty where the cluster has no accounting.
    pub qos: &'a str,
    /// The job's account; empty where it has none.
    pub account: &'a str,
    /// The nodes it wants.
    pub nodes: u32,
}

/// What holds for one job: the site's rule, tightened by the user's wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The rule.
    pub rule: Rule,
    /// The highest level that the user wants.
    pub at_most: Option<Level>,
    /// Nodes a segment.
    pub segment: Option<u32>,
}

impl Policy {
    /// The rule for a job: the first that matches, else the default.
    pub fn rule(&self, subject: Subject) -> &Rule {
        let found = self.rules.iter().find(|(matches, _)| matches.holds(subject));
        found.map_or(&self.default, |(_, rule)| rule)
    }

    /// What holds for a job with a wish.
    ///
    /// # Errors
    /// The wish names a level that the fabric does not have; in words.
    pub fn terms(&self, fabric: &Fabric, subject: Subject, wish: &Wish) -> Result<Terms, String> {
        let mut rule = self.rule(subject).clone();
        if rule.mode < Mode::Preferred {
            return Ok(Terms { rule, ..Terms::default() });
        }
        rule.mode = rule.mode.max(wish.mode.unwrap_or(rule.mode));
        let at_most = match &wish.reach {
            None | Some(Reach::Home) => None,
            Some(reach) => Some(self.level(fabric, reach)?),
        };
        if wish.reach == Some(Reach::Home) {
            (rule.reach, rule.widen_after, rule.mode) = (Reach::Home, 0, Mode::Required);
        }
        Ok(Terms { rule, at_most, segment: wish.segment })
    }

    /// Turns the names of levels into numbers of this fabric.
    ///
    /// # Errors
    /// The first name or number that the fabric does not have, with its place.
    pub fn settle(&mut self, fabric: &Fabric) -> Result<(), Diagnostic> {
        let known = fabric.level_count();
        for (name, (level, place)) in &self.levels {
            if usize::from(*level) >= known {
                let what = format!("level `{name}` is {level}, but the fabric has levels 0 to {}", known - 1);
                return Err(unknown_level(place, what));
            }
        }
        let mut settled = Vec::new();
        for rule in self.rules.iter().map(|(_, rule)| rule).chain([&self.default]) {
            let level = match (&rule.reach, &rule.place) {
                (Reach::Home, _) | (_, None) => None,
                (reach, Some(place)) => {
                    Some(self.level(fabric, reach).map_err(|what| unknown_level(place, what))?)
                }
            };
            settled.push(level.map_or(Reach::Home, Reach::Level));
        }
        let rules = self.rules.iter_mut().map(|(_, rule)| rule).chain([&mut self.default]);
        rules.zip(settled).for_each(|(rule, reach)| rule.reach = reach);
        Ok(())
    }

    /// The site's name for a level, if it gave one.
    pub fn name_of(&self, level: Level) -> Option<&str> {
        self.levels.iter().find(|(_, (named, _))| *named == level).map(|(name, _)| name.as_str())
    }

    fn level(&self, fabric: &Fabric, reach: &Reach) -> Result<Level, String> {
        let last = fabric.level_count() as Level - 1;
        match reach {
            Reach::Home => Ok(0),
            Reach::Level(level) if *level <= last => Ok(*level),
            Reach::Level(level) => {
                Err(format!("there is no level {level}; the fabric has levels 0 to {last}"))
            }
            Reach::Named(name) => {
                if let Some((level, _)) = self.levels.get(name) {
                    return Ok(*level);
                }
                let mut levels = fabric
                    .switches()
                    .filter(|(_, switch)| switch.name.starts_with(name))
                    .map(|(_, switch)| switch.level);
                let first = levels.next().ok_or_else(|| {
                    format!("there is no level `{name}`: it stands under no [levels], and no switch's name begins with it")
                })?;
                if levels.all(|level| level == first) {
                    Ok(first)
                } else {
                    Err(format!("switches whose names begin with `{name}` are on several levels"))
                }
            }
        }
    }
}

fn unknown_level(place: &Place, what: String) -> Diagnostic {
    Diagnostic::new(UNKNOWN_LEVEL, place.clone(), what, "`lockstep topo` shows the fabric's levels")
}

impl Match {
    fn holds(&self, subject: Subject) -> bool {
        let among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
        among(&self.partitions, subject.partition)
            && among(&self.qos, subject.qos)
            && among(&self.accounts, subject.account)
            && subject.nodes >= self.min_nodes
    }
}

impl Terms {
    /// The levels that a gang may spread to, each with how long it must have waited before: its home level, or from what
    /// level the rule allows on the higher ones. Never empty for a gang that has a home; empty if that is higher than
    /// the user wants.
    pub fn levels(&self, fabric: &Fabric, home: Level) -> Vec<(Level, Time)> {
        let last = fabric.level_count() as Level - 1;
        let allowed = match self.rule.reach {
            Reach::Level(level) => level.clamp(home, last.max(home)),
            Reach::Home | Reach::Named(_) => home,
        };
        let wait = |steps: Level| match (self.rule.mode, self.rule.widen_after) {
            (Mode::Preferred, 0) => Some(0),
            (_, 0) => None,
            (_, seconds) => Some(seconds.saturating_mul(steps.into())),
        };
        let widened = (1..).map_while(|steps| Some((allowed.checked_add(steps)?, wait(steps)?)));
        let levels = (home..=allowed).map(|level| (level, 0)).chain(widened);
        let at_most = self.at_most.unwrap_or(last).min(last);
        levels.take_while(|&(level, _)| level <= at_most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::fabric;

    fn terms(rule: Rule, at_most: Option<Level>) -> Terms {
        Terms { rule, at_most, segment: None }
    }

    #[test]
    fn levels_open_one_after_the_other() {
        let fabric = fabric(&[&[4, 4], &[4, 4]]);
        let levels = |rule: &Rule, at_most| terms(rule.clone(), at_most).levels(&fabric, 0);
        let mut rule = Rule::default();
        assert_eq!(levels(&rule, None), [(0, 0)]);
        rule.widen_after = 60;
        assert_eq!(levels(&rule, None), [(0, 0), (1, 60)]);
        assert_eq!(levels(&rule, Some(0)), [(0, 0)]);
        rule.reach = Reach::Level(1);
        assert_eq!(levels(&rule, None), [(0, 0), (1, 0)]);
        rule = Rule { mode: Mode::Preferred, ..Rule::default() };
        assert_eq!(levels(&rule, None), [(0, 0), (1, 0)]);
        assert_eq!(terms(rule, Some(0)).levels(&fabric, 1), [], "the user wants less than the gang needs");
    }
}
