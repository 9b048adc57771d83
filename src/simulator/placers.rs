//! Where a job goes that may start: Lockstep, and what it is compared with.

use super::baseline::slurm_tree::SlurmTree;
use super::machine::Machine;
use super::world::World;
use crate::nodeset::NodeSet;
use crate::placement::Planner;
use crate::placement::candidates::Home;
use crate::placement::mix::{History, Mix};
use crate::placement::victims::Candidate;
use crate::request::{JobId, Time};

/// A way to choose nodes.
pub struct Placers {
    /// Keeps account of which nodes are free; decides, where the way is Lockstep's.
    planner: Planner,
    rule: Rule,
    /// What was submitted, for those who keep room for more of the like.
    history: Option<History>,
    submitted: u64,
}

/// After how many submissions the mix that room is kept for is worked out again.
const LEARN_EVERY: u64 = 256;

/// The nodes for so many workers, out of the usable ones.
type BestEffort = Box<dyn FnMut(&Machine, &NodeSet, u32) -> Option<NodeSet>>;

enum Rule {
    /// One domain of the home level; by request number, where that is.
    Gang(Vec<Option<Home>>),
    /// Any nodes, as good as the rule can.
    BestEffort(BestEffort),
}

impl Placers {
    /// Lockstep.
    pub fn lockstep(machine: &Machine) -> Self {
        Self { history: Some(History::default()), ..Self::gang(machine, &Mix::default()) }
    }

    /// Lockstep without hole cost: the fewest leaves, then the tightest fit.
    pub fn pack(machine: &Machine) -> Self {
        Self::gang(machine, &Mix::new([], []))
    }

    fn gang(machine: &Machine, mix: &Mix) -> Self {
        Self {
            planner: Planner::new(&machine.fabric, mix),
            rule: Rule::Gang(Vec::new()),
            history: None,
            submitted: 0,
        }
    }

    /// Stock Slurm with topology/tree.
    pub fn slurm_tree(machine: &Machine) -> Self {
        let mut rules = SlurmTree::default();
        let place =
            move |machine: &Machine, usable: &NodeSet, nodes| rules.place(&machine.fabric, usable, nodes);
        Self::best_effort(machine, Box::new(place))
    }

    /// The first free nodes.
    pub fn first_fit(machine: &Machine) -> Self {
        let place = |_: &Machine, usable: &NodeSet, nodes: u32| {
            let chosen = usable.iter().take(nodes as usize);
            let chosen = NodeSet::from_nodes(usable.size(), chosen);
            (chosen.count() == nodes as usize).then_some(chosen)
        };
        Self::best_effort(machine, Box::new(place))
    }

    fn best_effort(machine: &Machine, place: BestEffort) -> Self {
        let planner = Planner::new(&machine.fabric, &Mix::new([], []));
        Self { planner, rule: Rule::BestEffort(place), history: None, submitted: 0 }
    }

    /// Takes note of a job that was submitted.
    pub fn learn(&mut self, world: &World, job: u32) {
        let Some(history) = &mut self.history else { return };
        let job = world.job(job);
        history.record(world.now, job.nodes, job.limit);
        self.submitted += 1;
        if self.submitted.is_multiple_of(LEARN_EVERY)
            && let Some(mix) = history.mix()
        {
            self.planner.set_mix(&world.machine.fabric, &mix);
        }
    }

    /// Which nodes are free.
    pub fn books(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// Places a job on usable nodes.
    pub fn place(&mut self, world: &World, job: u32, usable: &NodeSet) -> Option<NodeSet> {
        let (fabric, request) = (&world.machine.fabric, world.request(job));
        match &mut self.rule {
            Rule::Gang(homes) => {
                let home = home(&mut self.planner, homes, world, job)?;
                let placed = self.planner.place(fabric, &world.ledger, usable, home, request, &[]);
                placed.ok().map(|placement| placement.nodes.clone())
            }
            Rule::BestEffort(place) => place(world.machine, usable, request.nodes),
        }
    }

    /// When and where a job could start; none if it never can as things are.
    pub fn forecast(&mut self, world: &World, job: u32) -> Option<(Time, NodeSet)> {
        let (fabric, request) = (&world.machine.fabric, world.request(job));
        match &mut self.rule {
            Rule::Gang(homes) => {
                let home = home(&mut self.planner, homes, world, job)?;
                let forecast =
                    self.planner.forecast(fabric, &world.ledger, &world.up, home, request, world.now);
                forecast.map(|forecast| (forecast.start, forecast.placement.nodes.clone()))
            }
            Rule::BestEffort(place) => {
                let (start, usable) = self.planner.first_free(
                    &world.ledger,
                    &world.up,
                    &request.share,
                    request.nodes,
                    world.now,
                )?;
                Some((start, place(world.machine, &usable, request.nodes)?))
            }
        }
    }

    /// Whom to preempt so that a job starts, and where it then starts.
    pub fn preempt(
        &mut self,
        world: &World,
        job: u32,
        candidates: &[Candidate],
    ) -> Option<(Vec<JobId>, NodeSet)> {
        let (fabric, request) = (&world.machine.fabric, world.request(job));
        match &mut self.rule {
            Rule::Gang(homes) => {
                let home = home(&mut self.planner, homes, world, job)?;
                let found =
                    self.planner.victims(fabric, &world.ledger, &world.up, home, request, candidates)?;
                Some((found.victims, found.placement.nodes))
            }
            Rule::BestEffort(place) => {
                // The youngest first, until there are enough nodes; then those go free whose nodes are not taken.
                let mut youngest = candidates.to_vec();
                youngest.sort_by_key(|candidate| (candidate.lost, candidate.job));
                let mut victims: Vec<JobId> = Vec::new();
                let nodes = youngest.into_iter().find_map(|candidate| {
                    victims.push(candidate.job);
                    let gives = |&node: &u32| {
                        world.ledger.has_free_without(node, &request.share, |job| victims.contains(&job))
                    };
                    let usable = NodeSet::from_nodes(world.up.size(), world.up.iter().filter(gives));
                    place(world.machine, &usable, request.nodes)
                })?;
                victims
                    .retain(|&victim| world.ledger.nodes_of(victim).iter().any(|&node| nodes.contains(node)));
                Some((victims, nodes))
            }
        }
    }
}

/// Where a request is contiguous, on the empty and healthy machine; worked out once.
fn home<'a>(
    planner: &mut Planner,
    homes: &'a mut Vec<Option<Home>>,
    world: &World,
    job: u32,
) -> Option<&'a Home> {
    let fabric = &world.machine.fabric;
    if homes.is_empty() {
        let shapes = world.workload.shapes.iter();
        *homes = shapes.map(|request| planner.home(fabric, fabric.listed(), request)).collect();
    }
    homes.get(world.job(job).shape)?.as_ref()
}
