use super::*;

const GPU: GresKind = GresKind(0);

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(2);
    ledger.set_capacity(0, Capacity { cpus: 64, memory_mb: 1000, gres: vec![(GPU, 8)] });
    ledger.set_capacity(1, Capacity { cpus: 64, memory_mb: 1000, gres: vec![] });
    ledger
}

fn share(cpus: u32, memory: Memory, gpus: u64) -> Share {
    Share { whole_node: false, cpus, memory, gres: vec![(GPU, gpus)] }
}

fn on_node_0(cpus: u32, memory_mb: u64, gpus: u64, end: Time) -> Holding {
    Holding { nodes: vec![(0, Held { cpus, memory_mb, gres: vec![(GPU, gpus)] })], end, suspended: false }
}

#[test]
fn each_resource_limits_for_itself() {
    let mut ledger = ledger();
    ledger.hold(JobId(1), on_node_0(32, 600, 6, 100));
    let fits = |share: Share| ledger.has_free(0, &share);
    assert!(fits(share(32, Memory::Megabytes(400), 2)));
    assert!(!fits(share(33, Memory::Megabytes(0), 0)));
    assert!(!fits(share(1, Memory::Megabytes(401), 0)));
    assert!(!fits(share(1, Memory::All, 0)));
    assert!(!fits(share(1, Memory::Megabytes(0), 3)));
    assert!(!fits(Share { whole_node: true, ..share(1, Memory::Megabytes(0), 0) }));
    assert!(!ledger.capable(1, &share(1, Memory::Megabytes(0), 1)));
    assert!(ledger.capable(0, &share(64, Memory::All, 8)));
}

#[test]
fn a_suspended_job_keeps_memory_and_gres() {
    let mut ledger = ledger();
    ledger.hold(JobId(1), on_node_0(64, 600, 8, 100));
    ledger.set_suspended(JobId(1), true);
    assert!(ledger.has_free(0, &share(64, Memory::Megabytes(400), 0)));
    assert!(!ledger.has_free(0, &share(64, Memory::Megabytes(400), 1)));
    ledger.set_suspended(JobId(1), false);
    assert!(!ledger.has_free(0, &share(1, Memory::Megabytes(400), 0)));
}

#[test]
fn a_share_is_free_when_enough_jobs_have_left() {
    let mut ledger = ledger();
    ledger.hold(JobId(1), on_node_0(8, 0, 2, 300));
    ledger.hold(JobId(2), on_node_0(8, 0, 4, 200));
    ledger.hold(JobId(3), on_node_0(8, 0, 2, 50));
    let when = |gpus| ledger.release_time(0, &share(1, Memory::Megabytes(0), gpus), 100);
    assert_eq!(when(0), Some(100));
    assert_eq!(when(2), Some(100 + OVERDUE_GRACE), "job 3 is overdue");
    assert_eq!(when(6), Some(200));
    assert_eq!(when(8), Some(300));
    assert_eq!(when(9), None);
}

#[test]
fn holding_again_replaces_and_release_forgets() {
    let mut ledger = ledger();
    ledger.hold(JobId(1), on_node_0(64, 0, 8, 100));
    ledger.hold(JobId(1), on_node_0(8, 0, 1, 100));
    assert!(ledger.holders(0).eq([JobId(1)]));
    assert!(ledger.has_free(0, &share(56, Memory::Megabytes(0), 7)));
    ledger.release(JobId(1));
    ledger.release(JobId(1));
    assert!(ledger.has_free(0, &share(64, Memory::All, 8)));
    assert_eq!(ledger.jobs().count(), 0);
}

#[test]
fn slots_are_gpus_or_cpus_and_changes_are_told() {
    let mut ledger = ledger();
    ledger.set_slot_kind(GPU);
    assert_eq!(ledger.slots(0), Slots { all: 8, free: 8, are_devices: true });
    assert_eq!(ledger.slots(1), Slots { all: 64, free: 64, are_devices: false });
    let before = ledger.epoch();
    ledger.hold(JobId(1), on_node_0(32, 600, 6, 100));
    assert_eq!(ledger.slots(0), Slots { all: 8, free: 2, are_devices: true });
    assert_eq!(ledger.devices(&share(9, Memory::All, 3)), 3);
    assert!(ledger.idle().iter().eq([1]));
    assert!(ledger.changed_since(before).unwrap().eq([0]));
    assert!(ledger.overdue(99).eq([]) && ledger.overdue(100).eq([JobId(1)]));
    ledger.set_end(JobId(1), 50);
    ledger.set_suspended(JobId(1), true);
    assert!(ledger.changed_since(before).unwrap().eq([0, 0, 0]));
    for _ in 0..CHANGES {
        ledger.hold(JobId(1), on_node_0(32, 600, 6, 100));
    }
    assert!(ledger.changed_since(before).is_none());
    assert!(ledger.changed_since(ledger.epoch()).unwrap().next().is_none());
}

#[test]
fn who_could_give_a_share_is_remembered_until_a_capacity_changes() {
    let mut ledger = Ledger::new(3);
    let has = |cpus| Capacity { cpus, ..Capacity::default() };
    (0..3).for_each(|node| ledger.set_capacity(node, has(4 + node)));
    let share = |cpus| Share { whole_node: false, cpus, memory: Memory::Megabytes(0), gres: vec![] };
    let mut capable = Capable::default();
    let mut nodes = |ledger: &Ledger, cpus| capable.of(ledger, &share(cpus)).iter().collect::<Vec<_>>();
    assert_eq!(nodes(&ledger, 5), [1, 2]);
    assert_eq!(nodes(&ledger, 6), [2]);
    assert_eq!(nodes(&ledger, 5), [1, 2]);
    ledger.set_capacity(0, has(8));
    assert_eq!(nodes(&ledger, 5), [0, 1, 2]);
    // More shares than are remembered.
    (0..40).for_each(|cpus| {
        assert_eq!(
            nodes(&ledger, cpus).len(),
            if cpus < 6 {
                3
            } else if cpus == 6 {
                2
            } else {
                usize::from(cpus < 9)
            }
        )
    });
}
