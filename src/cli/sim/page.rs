//! The comparison as one page for a browser, with nothing outside the file: the table, how it went over time, waits by job
//! size, and the fabric as a heat map.

use super::Parameters;
use super::table::{self, duration};
use lockstep::simulator::figures::{Figures, Series};
use lockstep::simulator::machine::Machine;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::prelude::*;
use std::error::Error;

const WIDTH: u32 = 900;
const HEIGHT: u32 = 260;
/// Columns and rows of a heat map at most.
const CELLS: (usize, usize) = (120, 64);

/// A colour for each placer, told apart also by those who see few colours.
const COLORS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 86, 86),
];

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .3rem}table{border-collapse:collapse;font-size:.9rem;width:100%}\
td,th{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:right}td:first-child{text-align:left}\
.best{font-weight:700}p.legend{margin:0;font-size:.85rem}.legend span{border-left:1.4em solid;padding-left:.4em;margin-right:1.2em}p.note{color:#555;margin:.2rem 0 .6rem}svg{max-width:100%;height:auto}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}dd{margin:0}";

/// The page.
///
/// # Errors
/// A plot could not be drawn.
pub fn render(
    parameters: &Parameters,
    figures: &[Figures],
    machine: &Machine,
) -> Result<String, Box<dyn Error>> {
    let percent = |value: f64| 100.0 * value;
    let over_time = |unit, value: &dyn Fn(&Series) -> Vec<f64>| over_time(figures, unit, value);
    let plots = [
        (
            "Queue",
            "GPUs that waiting jobs ask for.",
            over_time("GPUs", &|series| series.queued_gpus.iter().map(|&gpus| gpus as f64).collect())?,
        ),
        (
            "Utilisation",
            "GPUs that running jobs hold.",
            over_time("%", &|series| series.utilisation.iter().copied().map(percent).collect())?,
        ),
        (
            "Spread",
            "How much of the running gangs lies outside one domain of their home level. 0: none.",
            over_time("index", &|series| series.spread.clone())?,
        ),
        (
            "Fragmentation",
            "How many of the gangs that the free nodes could hold, ideally placed, they cannot hold as they lie. 0: none.",
            over_time("index", &|series| series.fragmentation.clone())?,
        ),
        (
            "Largest gang placeable",
            "Nodes of the largest gang that would find its place in one domain.",
            over_time("nodes", &|series| series.largest_gang.iter().map(|&n| n.into()).collect())?,
        ),
        ("Wait by size", "Mean wait of the jobs of each size.", wait_by_size(figures)?),
    ];
    let maps = figures.iter().map(|figures| Ok((figures.name, heat_map(figures, machine)?)));
    let maps: Vec<(&str, String)> = maps.collect::<Result<_, Box<dyn Error>>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Lockstep simulation" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Lockstep simulation" }
                p { (table::about(parameters)) }
                (comparison(figures))
                @for (title, note, plot) in &plots {
                    h2 { (title) }
                    p.note { (note) }
                    (legend(figures))
                    (PreEscaped(plot))
                }
                h2 { "The fabric" }
                p.note { "Each row is a leaf (or neighbouring leaves), time runs to the right. Dark: all GPUs busy; white: none." }
                @for (name, map) in &maps {
                    p.note { (name) }
                    (PreEscaped(map))
                }
                (assumptions(parameters))
            }
        }
    };
    Ok(page.into_string())
}

/// Which colour is whose, above each plot: inside, it would hide lines.
fn legend(figures: &[Figures]) -> Markup {
    html! {
        p.legend {
            @for (figures, RGBColor(red, green, blue)) in figures.iter().zip(COLORS.iter().cycle()) {
                span style=(format!("border-color:rgb({red},{green},{blue})")) { (figures.name) }
            }
        }
    }
}

fn comparison(figures: &[Figures]) -> Markup {
    html! {
        table {
            tr { th {} @for figures in figures { th { (figures.name) } } }
            @for (what, values) in table::lines(figures) {
                tr {
                    td { (what) }
                    @for (value, is_best) in values { td.best[is_best] { (value) } }
                }
            }
        }
    }
}

fn assumptions(parameters: &Parameters) -> Markup {
    let rates: Vec<String> =
        parameters.slowdown.iter().map(|rate| format!("{:.0} %", 100.0 * rate)).collect();
    let failures = parameters.mtbf_hours.map_or("none".into(), |hours| {
        format!("each node every {hours} h on average, back after {} h", parameters.repair_hours)
    });
    let lines = [
        ("Speed 0, 1, ... levels beyond home", rates.join(", ")),
        ("Limits where the trace has none", format!("run time times {}", parameters.overestimate)),
        ("Jobs a pass looks at", parameters.depth.to_string()),
        ("Time-out of incomplete pods", duration(parameters.pod_timeout_s as f64)),
        ("Jobs that may be preempted", format!("{:.0} %", 100.0 * parameters.preemptible)),
        ("Node failures", failures),
        ("Not counted at the start", format!("{:.0} % of the span", 100.0 * parameters.warm_up)),
        ("Seed", parameters.seed.to_string()),
    ];
    html! {
        h2 { "Assumptions" }
        dl { @for (what, value) in lines { dt { (what) } dd { (value) } } }
    }
}

/// A line for each placer over time.
fn over_time(
    figures: &[Figures],
    unit: &str,
    value: &dyn Fn(&Series) -> Vec<f64>,
) -> Result<String, Box<dyn Error>> {
    let lines: Vec<Vec<(f64, f64)>> = figures
        .iter()
        .map(|figures| {
            let hours = figures.series.time.iter().map(|&seconds| seconds as f64 / 3600.0);
            hours.zip(value(&figures.series)).collect()
        })
        .collect();
    draw_lines("hours", unit, &lines, &|hours| format!("{hours:.2}"))
}

/// A line for each placer over the sizes, on a scale of powers of two.
fn wait_by_size(figures: &[Figures]) -> Result<String, Box<dyn Error>> {
    let lines: Vec<Vec<(f64, f64)>> = figures
        .iter()
        .map(|figures| {
            let sizes = figures.by_size.iter();
            sizes.map(|size| (f64::from(size.gpus).log2(), size.wait_mean_s / 60.0)).collect()
        })
        .collect();
    draw_lines("GPUs", "minutes", &lines, &|power| format!("{:.0}", power.exp2()))
}

fn draw_lines(
    x_unit: &str,
    y_unit: &str,
    lines: &[Vec<(f64, f64)>],
    x_label: &dyn Fn(&f64) -> String,
) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        let points = || lines.iter().flatten();
        let x_max = points().map(|&(x, _)| x).fold(f64::MIN_POSITIVE, f64::max);
        let y_max = points().map(|&(_, y)| y).fold(f64::MIN_POSITIVE, f64::max) * 1.05;
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..x_max, 0.0..y_max.max(0.01))?;
        let label = ("sans-serif", 13);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_unit)
            .y_desc(y_unit)
            .x_label_formatter(x_label)
            .y_label_formatter(&|y| if y_max < 5.0 { format!("{y:.1}") } else { format!("{y:.0}") })
            .label_style(label)
            .axis_desc_style(label)
            .draw()?;
        for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
            chart.draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// How busy each leaf is over time.
fn heat_map(figures: &Figures, machine: &Machine) -> Result<String, Box<dyn Error>> {
    let samples = &figures.series.leaves;
    let leaves = machine.fabric.at_level(0).len();
    let (columns, rows) = (samples.len().min(CELLS.0).max(1), leaves.min(CELLS.1).max(1));
    let (row_height, left) = ((320 / rows as u32).clamp(4, 24), 64);
    let height = row_height * rows as u32 + 12;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let column_width = f64::from(WIDTH - left) / columns as f64;
        for row in 0..rows {
            let (from, to) = (row * leaves / rows, ((row + 1) * leaves / rows).max(row * leaves / rows + 1));
            let y = (row as u32 * row_height) as i32;
            if row % (rows / 8).max(1) == 0 {
                let id = machine.fabric.at_level(0)[from];
                let name = machine.fabric.switch(id).name.clone();
                root.draw(&Text::new(name, (2, y), ("sans-serif", 11)))?;
            }
            let busy_at = |column: usize| {
                let sample = &samples[column * samples.len() / columns];
                let cells = sample.get(from..to).unwrap_or_default();
                cells.iter().map(|&busy| u32::from(busy)).sum::<u32>() / cells.len().max(1) as u32
            };
            let busy: Vec<u32> = (0..columns).map(busy_at).collect();
            let mut column = 0;
            for run in busy.chunk_by(|a, b| a == b) {
                let x = |column: usize| left as i32 + (column as f64 * column_width) as i32;
                let cell = [(x(column), y), (x(column + run.len()), y + row_height as i32 - 1)];
                column += run.len();
                let fade = |full: u32| (255 - (255 - full) * run[0].min(100) / 100) as u8;
                let color = RGBColor(fade(0), fade(60), fade(120));
                root.draw(&Rectangle::new(cell, color.filled()))?;
            }
        }
        root.present()?;
    }
    Ok(svg)
}
