//! `lockstep generate`: man pages and shell completions, made from the same definition as `--help`.

use crate::{Cli, Outcome, report};
use clap::CommandFactory;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes man pages or shell completions, for packages.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write lockstep.1 and a page for each subcommand into a folder.
    Man {
        /// The folder, which must exist.
        folder: PathBuf,
    },
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

pub fn run(args: &Args) -> Outcome {
    let mut command = Cli::command();
    match &args.what {
        What::Man { folder } => clap_mangen::generate_to(command, folder)
            .map_err(|error| format!("cannot write man pages into {}: {error}", folder.display()))?,
        What::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "lockstep", &mut script);
            report::show(&String::from_utf8(script)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
