//! What `scontrol show config` shows of Lockstep (up to Slurm 24.11).

use super::counters;
use super::state::with;
use crate::fragmentation::{largest_gang, room, spread};
use crate::placement::mix::Mix;

/// Names and values.
pub fn pairs() -> Vec<(String, String)> {
    // Slurm ends the title above them without a new line.
    let mut pairs = vec![("\nLockstepVersion", env!("CARGO_PKG_VERSION").to_owned())];
    with(|state| {
        let Some(fabric) = &state.site.fabric else {
            pairs.push(("LockstepFabric", "none".into()));
            return;
        };
        let ledger = &state.site.ledger;
        let gangs = ledger.jobs().map(|job| ledger.nodes_of(job)).filter(|nodes| nodes.len() > 1);
        let default = Mix::default();
        let rooms = room(fabric, ledger.idle(), state.site.policy.mix.as_ref().unwrap_or(&default));
        let fragmentation: Vec<String> = rooms
            .iter()
            .map(|room| {
                let name =
                    state.site.policy.name_of(room.level).map_or_else(|| room.level.to_string(), Into::into);
                format!("{name}={:.2}", room.fragmentation())
            })
            .collect();
        pairs.extend([
            ("LockstepFabric", state.fabric_line()),
            ("LockstepSpread", format!("{:.3}", spread(fabric, gangs))),
            ("LockstepFragmentation", fragmentation.join(",")),
            ("LockstepIdleNodes", ledger.idle().count_common(fabric.listed()).to_string()),
            ("LockstepLargestGang", largest_gang(fabric, ledger.idle()).to_string()),
        ]);
    });
    pairs.push(("LockstepCalls", counters::summary()));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
