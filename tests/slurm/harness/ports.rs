//! Ports for a cluster's daemons, apart from those of every other cluster on the machine.

use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Below the range from which the kernel takes ports for outgoing connections.
const RANGE: std::ops::Range<u16> = 12_000..32_000;
/// Clusters take whole blocks.
const BLOCK: usize = 20;

/// Consecutive ports of the loopback interface, ours as long as this lives.
pub struct Ports {
    pub first: u16,
    /// The daemons bind the ports some time after we looked. So each block is held by a name that only one process can
    /// have, which the kernel takes back however that process ends.
    _held: Vec<UnixListener>,
}

impl Ports {
    /// Takes the first free ones.
    pub fn take(count: usize) -> Self {
        let blocks = count.div_ceil(BLOCK);
        for first in RANGE.step_by(BLOCK * blocks) {
            let starts = (first..).step_by(BLOCK).take(blocks);
            let names = starts.map(|block| SocketAddr::from_abstract_name(format!("lockstep-ports-{block}")));
            let Ok(held) = names.map(|name| UnixListener::bind_addr(&name?)).collect() else { continue };
            let mut ports = (first..).take(count);
            if ports.all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
                return Self { first, _held: held };
            }
        }
        panic!("no {count} free ports in {RANGE:?}");
    }

    /// A name that no other cluster on this machine has, nor one that is being taken down and has left its ports.
    pub fn cluster_name(&self) -> String {
        format!("lockstep-{}-{}", std::process::id(), self.first)
    }
}
