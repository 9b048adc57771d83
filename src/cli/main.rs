//! The command line of Lockstep: the plugin's own core, for people.

mod against;
mod check;
mod cluster;
mod generate;
mod install;
mod partitions;
mod picture;
mod report;
mod sim;
mod topo;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

/// Places Slurm's multi-node GPU jobs whole, on neighbouring nodes.
#[derive(Parser)]
#[command(version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// When to colour the output.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: report::Color,
}

const EXAMPLES: &str = "Examples:
  lockstep check                                the cluster of /etc/slurm/slurm.conf
  lockstep check --topology new.conf --against /etc/slurm/topology.conf
  lockstep topo --topology topology.conf --alone   a file without its slurm.conf
  lockstep topo --svg fabric.svg                the fabric as a picture
  lockstep sim --nodes 512 --load 0.9           how Lockstep and others would place a day's jobs";

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Topo(topo::Args),
    Sim(sim::Args),
    Generate(generate::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.color.apply();
    let done = match cli.command {
        Command::Check(args) => check::run(&args),
        Command::Topo(args) => topo::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Generate(args) => generate::run(&args),
    };
    done.unwrap_or_else(|failure| {
        report::failure(&*failure);
        ExitCode::from(2)
    })
}

/// What a subcommand comes to: its exit code, or why it could not do its work.
type Outcome = Result<ExitCode, Box<dyn Error>>;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_code_of_check_is_documented() {
        let docs = include_str!("../../docs/topology.md");
        for code in [check::CODES, install::CODES, partitions::CODES].concat() {
            let row = format!("| {} | {} | {} |", code.id, code.severity, code.meaning);
            assert!(docs.contains(&row), "missing in docs/topology.md: {row}");
        }
    }
}
