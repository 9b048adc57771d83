//! The comparison as a table: one column a placer, the best value of each line marked.

use super::Parameters;
use crate::report::{BOLD, FAINT};
use comfy_table::{Cell, CellAlignment, Table, presets};
use lockstep::simulator::figures::Figures;

/// Which of two values is better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Less,
    More,
    Neither,
    /// Less is better, and where it never happened there is nothing to tell.
    LessIfAny,
}

type Line = (&'static str, Better, fn(&Figures) -> f64, fn(f64) -> String);

const LINES: [Line; 19] = [
    ("jobs counted", Better::Neither, |f| f.jobs as f64, whole),
    ("gangs counted", Better::Neither, |f| f.gangs as f64, whole),
    ("gangs spread", Better::Less, |f| f.gangs_spread_pct, percent),
    ("gangs on more leaves than needed", Better::Less, |f| f.gangs_excess_pct, percent),
    ("utilisation", Better::More, |f| 100.0 * f.utilisation, percent),
    ("effective utilisation", Better::More, |f| 100.0 * f.effective_utilisation, percent),
    ("gang wait, mean", Better::Less, |f| f.gang_wait_mean_s, duration),
    ("gang wait, 95 %", Better::Less, |f| f.gang_wait_p95_s, duration),
    ("wait of the largest gangs, mean", Better::Less, |f| f.largest_gangs_wait_mean_s, duration),
    ("small jobs' wait, mean", Better::Less, |f| f.small_wait_mean_s, duration),
    ("small jobs' wait, 95 %", Better::Less, |f| f.small_wait_p95_s, duration),
    ("bounded slowdown", Better::Less, |f| f.bounded_slowdown, two_digits),
    ("spread index", Better::Less, |f| f.spread, three_digits),
    ("fragmentation index", Better::Less, |f| f.fragmentation, three_digits),
    ("largest gang placeable, nodes", Better::More, |f| f.largest_gang_mean, one_digit),
    ("GPU-hours in deadlock", Better::LessIfAny, |f| f.deadlocked_gpu_hours, one_digit),
    ("GPU-hours of work lost", Better::LessIfAny, |f| f.lost_gpu_hours, one_digit),
    ("preemptions", Better::LessIfAny, |f| f.preemptions as f64, whole),
    ("until the last job ended", Better::Less, |f| f.makespan_s as f64, duration),
];

/// What was simulated, in a line.
pub fn about(parameters: &Parameters) -> String {
    let Parameters { trace, jobs, nodes, leaves, gpus_per_node, offered_load, span_s, .. } = parameters;
    let left_out: String =
        parameters.left_out.iter().map(|(why, jobs)| format!("; {jobs} left out: {why}")).collect();
    format!(
        "{jobs} jobs ({trace}) in {}, offered load {offered_load:.2}, on {nodes} nodes of {gpus_per_node} GPUs \
         under {leaves} leaves{left_out}",
        duration(*span_s as f64)
    )
}

/// The lines of the comparison: what, and each placer's value, with whether it is the best of several.
pub fn lines(figures: &[Figures]) -> Vec<(&'static str, Vec<(String, bool)>)> {
    let line = |&(what, better, value, show): &Line| {
        let values: Vec<f64> = figures.iter().map(value).collect();
        let best = values.iter().copied().reduce(if better == Better::More { f64::max } else { f64::min });
        let is_best = |value: f64| {
            better != Better::Neither
                && figures.len() > 1
                && best.is_some_and(|best| show(best) == show(value))
                && !values.iter().all(|&other| show(other) == show(value))
        };
        (what, values.iter().map(|&value| (show(value), is_best(value))).collect())
    };
    let happened = |line: &&Line| line.1 != Better::LessIfAny || figures.iter().any(|f| line.2(f) > 0.0);
    LINES.iter().filter(happened).map(line).collect()
}

/// The comparison as text.
pub fn text(parameters: &Parameters, figures: &[Figures]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let names = figures.iter().map(|figures| figures.name);
    table.set_header(std::iter::once("").chain(names));
    for (what, values) in lines(figures) {
        let cell = |(value, is_best): (String, bool)| {
            Cell::new(if is_best { format!("*{value}") } else { value }).set_alignment(CellAlignment::Right)
        };
        table.add_row(std::iter::once(Cell::new(what)).chain(values.into_iter().map(cell)));
    }
    let hint = if figures.len() > 1 { "* the best of the line; " } else { "" };
    format!(
        "{BOLD}{}{BOLD:#}\n{table}\n{FAINT}{hint}what the lines mean: docs/simulator.md{FAINT:#}\n",
        about(parameters)
    )
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn one_digit(value: f64) -> String {
    format!("{value:.1}")
}

fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}

fn three_digits(value: f64) -> String {
    format!("{value:.3}")
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}
