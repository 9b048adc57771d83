//! Why a job is left to Slurm.

use std::fmt;

/// Why Lockstep leaves a job to Slurm's own select/cons_tres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PassThrough {
    /// No usable topology.conf.
    NoFabric,
    /// One node, and no say in which: no gang to keep together.
    NotAGang,
    /// Slurm asks for a reservation, not for a job.
    Reservation,
    /// Feature counts or exclusive features: Slurm asks for the parts one by one.
    FeatureParts,
    /// The partition shares its CPUs among jobs, which the ledger does not model.
    Oversubscribed,
    /// `--spread-job`: the user wants the opposite.
    SpreadJob,
    /// The job grows another one.
    Expansion,
    /// A GRES that several jobs share (MPS, shards).
    SharedGres,
    /// None of the nodes that the job could use hangs on the fabric.
    OffFabric,
    /// The user names nodes that the topology does not list.
    NodesOffFabric,
    /// The rule for it says `off`.
    RuledOut,
    /// Its nodes should be neighbours, but under no switch there are so many.
    OnlyPreferred,
    /// The last decision for it took too long.
    OverBudget,
    /// A job record without what every job has.
    Unreadable,
}

impl PassThrough {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::NoFabric,
        Self::NotAGang,
        Self::Reservation,
        Self::FeatureParts,
        Self::Oversubscribed,
        Self::SpreadJob,
        Self::Expansion,
        Self::SharedGres,
        Self::OffFabric,
        Self::NodesOffFabric,
        Self::RuledOut,
        Self::OnlyPreferred,
        Self::OverBudget,
        Self::Unreadable,
    ];
}

impl fmt::Display for PassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFabric => "no usable topology.conf",
            Self::NotAGang => "not a multi-node request",
            Self::Reservation => "a reservation, not a job",
            Self::FeatureParts => "feature counts or exclusive features",
            Self::Oversubscribed => "a partition that oversubscribes its nodes",
            Self::SpreadJob => "--spread-job",
            Self::Expansion => "the expansion of a running job",
            Self::SharedGres => "a GRES shared by several jobs",
            Self::OffFabric => "no permitted node is in topology.conf",
            Self::NodesOffFabric => "a required node is not in topology.conf",
            Self::RuledOut => "a rule with mode off",
            Self::OnlyPreferred => "a preferred gang that no switch could hold",
            Self::OverBudget => "a decision that takes too long",
            Self::Unreadable => "an incomplete job record",
        })
    }
}
