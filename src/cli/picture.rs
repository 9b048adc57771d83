//! The fabric as a picture: boxes in boxes, leaves as tiles with one square a node.
//!
//! Every switch is a box around the boxes of its children, which flow in rows like words. A box's row is as wide as
//! makes the box about as wide as a screen, so a fabric of 10,240 nodes becomes a page and not a ribbon. Sizes are
//! found from the leaves up, places from the roots down; both passes follow the switches' numbers, so a chain of
//! 100,000 switches is no recursion.

use lockstep::fabric::tree::{Fabric, Switch};
use lockstep::fabric::{NodeNames, hostlist, review};
use svg::Document;
use svg::node::element::{Group, Path, Rectangle, Style, Text, Title};

/// All lengths are in pixels.
const GAP: f64 = 6.0;
const HEADER: f64 = 18.0;
const SQUARE: f64 = 7.0;
const PITCH: f64 = 9.0;
const CHARACTER: f64 = 6.4;
/// How much wider than high a box should be.
const ASPECT: f64 = 1.7;

const STYLE: &str = "text{font-family:sans-serif;font-size:11px;fill:#222}
.title{font-size:15px;font-weight:bold}.count{fill:#667}
.leaf{fill:#fff;stroke:#7a8db0}.node{fill:#4a7ebb}.outside{fill:#fff;stroke:#999;stroke-dasharray:4 3}";
/// The fills of boxes from level 1 up; higher levels repeat them.
const FILLS: [&str; 4] = ["#e8eef7", "#d3e0f0", "#f3ead8", "#e2efe0"];

const LEGEND: &str = "a square is a node, a number counts the nodes in its box";

#[derive(Clone, Copy, Default)]
struct Box {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Draws the fabric.
pub fn draw(fabric: &Fabric, nodes: &NodeNames) -> Document {
    let mut boxes = vec![Box::default(); fabric.switch_count()];
    for (id, switch) in fabric.switches().rev() {
        let index = id.0 as usize;
        let header = label_width(switch);
        let inside = if switch.is_leaf() {
            let columns = columns(switch);
            (columns as f64 * PITCH, switch.node_count().div_ceil(columns) as f64 * PITCH)
        } else {
            let children: Vec<usize> = switch.children.iter().map(|child| child.0 as usize).collect();
            flow(&mut boxes, &children)
        };
        boxes[index].width = inside.0.max(header) + 2.0 * GAP;
        boxes[index].height = inside.1 + HEADER + GAP;
    }
    let roots: Vec<usize> = fabric
        .switches()
        .filter(|(_, switch)| switch.parent.is_none())
        .map(|(id, _)| id.0 as usize)
        .collect();
    let (width, height) = flow(&mut boxes, &roots);
    let title_height = 50.0;
    // So far each box stands relative to its parent's content.
    for (id, switch) in fabric.switches() {
        let origin = switch.parent.map_or((GAP, title_height), |parent| {
            let above = boxes[parent.0 as usize];
            (above.x + GAP, above.y + HEADER)
        });
        let own = &mut boxes[id.0 as usize];
        (own.x, own.y) = (own.x + origin.0, own.y + origin.1);
    }

    let outside: Vec<&str> = review::unlisted(nodes, fabric).filter_map(|node| nodes.name(node)).collect();
    let outside_height = if outside.is_empty() { 0.0 } else { HEADER + GAP };
    let title = crate::topo::summary(fabric);
    let width = width.max(title.chars().count() as f64 * 9.0) + 2.0 * GAP;
    let height = title_height + height + outside_height + GAP;
    let mut document = Document::new()
        .set("viewBox", (0, 0, width.ceil() as u32, height.ceil() as u32))
        .set("width", width.ceil())
        .set("height", height.ceil())
        .add(Style::new(STYLE))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "#fff"))
        .add(Text::new(title).set("class", "title").set("x", GAP).set("y", 22))
        .add(Text::new(LEGEND).set("class", "count").set("x", GAP).set("y", 40));
    for (id, switch) in fabric.switches() {
        let below = if switch.is_leaf() {
            hostlist::fold(fabric.nodes_under(id).iter().filter_map(|&node| nodes.name(node)))
        } else {
            format!("{} switches below", switch.children.len())
        };
        document = document.add(switch_box(switch, boxes[id.0 as usize], &below));
    }
    if !outside.is_empty() {
        let y = height - outside_height;
        let label = format!("{} outside the fabric: {}", outside.len(), hostlist::fold(&outside));
        let frame =
            rectangle(Box { x: GAP, y, width: width - 2.0 * GAP, height: HEADER }).set("class", "outside");
        let text = Text::new(shortened(&label, width - 4.0 * GAP)).set("x", 2.0 * GAP).set("y", y + 13.0);
        document = document.add(Group::new().add(Title::new(label)).add(frame).add(text));
    }
    document
}

/// Sets boxes in rows, at the row width that wastes least and comes near the aspect, and places them relative to the
/// first row's corner; returns the extent of all.
fn flow(boxes: &mut [Box], members: &[usize]) -> (f64, f64) {
    let area: f64 = members.iter().map(|&i| (boxes[i].width + GAP) * (boxes[i].height + GAP)).sum();
    let widest = members.iter().map(|&i| boxes[i].width).fold(0.0, f64::max);
    let ideal = widest.max((area * ASPECT).sqrt());
    let cost =
        |(width, height): (f64, f64)| width * height * (1.0 + 0.5 * (width / height / ASPECT).ln().abs());
    let candidates =
        (10..=40).map(|twentieths| ideal * f64::from(twentieths) / 20.0).filter(|&width| width >= widest);
    let best =
        candidates.min_by(|&a, &b| cost(set(boxes, members, a)).total_cmp(&cost(set(boxes, members, b))));
    set(boxes, members, best.unwrap_or(ideal))
}

fn set(boxes: &mut [Box], members: &[usize], row_width: f64) -> (f64, f64) {
    let (mut x, mut y, mut row_height, mut extent) = (0.0, 0.0, 0.0, 0.0_f64);
    for &i in members {
        if x > 0.0 && x + boxes[i].width > row_width {
            (x, y, row_height) = (0.0, y + row_height + GAP, 0.0);
        }
        (boxes[i].x, boxes[i].y) = (x, y);
        row_height = f64::max(row_height, boxes[i].height);
        extent = extent.max(x + boxes[i].width);
        x += boxes[i].width + GAP;
    }
    (extent, y + row_height)
}

/// How many squares a leaf has in a row: 8 up to 128 nodes and more for larger leaves or longer names.
fn columns(switch: &Switch) -> usize {
    let nodes = switch.node_count();
    let wanted = if nodes <= 128 { 8 } else { (nodes as f64).sqrt().ceil() as usize };
    wanted.max((label_width(switch) / PITCH) as usize).min(nodes)
}

fn label_width(switch: &Switch) -> f64 {
    let characters = switch.name.chars().count() + switch.node_count().to_string().len() + 2;
    (characters as f64 * CHARACTER + 1.0).min(220.0)
}

/// A text cut in its middle to fit a width: the ends of names tell them apart.
fn shortened(text: &str, width: f64) -> String {
    let room = (width / CHARACTER) as usize;
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= room {
        return text.into();
    }
    let kept = room.saturating_sub(1);
    let (head, tail) = (&characters[..kept.div_ceil(2)], &characters[characters.len() - kept / 2..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

fn rectangle(Box { x, y, width, height }: Box) -> Rectangle {
    Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", height).set("rx", 3)
}

fn switch_box(switch: &Switch, place: Box, below: &str) -> Group {
    let count = switch.node_count();
    let frame = rectangle(place);
    let frame = if switch.is_leaf() {
        frame.set("class", "leaf")
    } else {
        let fill = FILLS[usize::from(switch.level - 1) % FILLS.len()];
        frame.set("fill", fill).set("stroke", "#9ab")
    };
    let number = count.to_string();
    let room = place.width - 2.0 * GAP - (number.len() as f64 + 2.0) * CHARACTER;
    let baseline = place.y + 13.0;
    let name = Text::new(shortened(&switch.name, room)).set("x", place.x + GAP).set("y", baseline);
    let number = Text::new(number)
        .set("class", "count")
        .set("text-anchor", "end")
        .set("x", place.x + place.width - GAP)
        .set("y", baseline);
    let title = format!("{}: level {}, {count} nodes\n{below}", switch.name, switch.level);
    let group = Group::new().add(Title::new(title)).add(frame).add(name).add(number);
    if switch.is_leaf() { group.add(squares(switch, place)) } else { group }
}

/// One square a node, as a single path: a picture of 100,000 nodes stays small.
fn squares(switch: &Switch, place: Box) -> Path {
    let columns = columns(switch);
    let mut path = String::new();
    for i in 0..switch.node_count() {
        let x = place.x + GAP + (i % columns) as f64 * PITCH;
        let y = place.y + HEADER + (i / columns) as f64 * PITCH;
        path += &format!("M{x:.0} {y:.0}h{SQUARE}v{SQUARE}h-{SQUARE}z");
    }
    Path::new().set("class", "node").set("d", path)
}
