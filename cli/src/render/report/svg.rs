//! Plots over time as SVG, without a script: each is whole in itself.

use std::fmt::Write;

/// Of the drawing, in its own units; the page scales it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 200.0;
/// Room for the numbers of the two axes.
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 8.0;
/// Without a point for so many of the usual distances, nothing is known in between.
const GAP: u64 = 3;

/// One plot.
pub struct Plot<'a> {
    /// Its heading.
    pub title: &'a str,
    /// What its numbers are.
    pub unit: &'a str,
    /// The first and the last moment, in seconds since 1970.
    pub span: (u64, u64),
    /// How the series are drawn.
    pub shape: Shape,
    /// The top of the axis at least.
    pub least_top: f64,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

/// How series are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line each.
    Lines,
    /// Areas on top of each other.
    Stack,
    /// Bars beside each other.
    Bars,
}

/// Values by their time, ascending; none where one is not known.
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// Its colour, as a class of the style sheet.
    pub colour: &'static str,
    /// The values.
    pub points: Vec<(u64, Option<f64>)>,
}

/// The plot with its heading and legend, as HTML.
pub fn figure(plot: &Plot<'_>) -> String {
    let mut html = String::new();
    let _ = write!(
        html,
        "<figure><figcaption><b>{}</b> <span>{}</span>",
        plot.title, plot.unit
    );
    for series in &plot.series {
        let _ = write!(html, "<i class=\"{}\"></i>{}", series.colour, series.name);
    }
    html.push_str("</figcaption>");
    let known = plot
        .series
        .iter()
        .any(|series| series.points.iter().any(|(_, value)| value.is_some()));
    match known {
        true => html.push_str(&drawing(plot)),
        false => html.push_str("<p class=\"unknown\">not known on this machine, or not yet</p>"),
    }
    html.push_str("</figure>\n");
    html
}

fn drawing(plot: &Plot<'_>) -> String {
    let stacked = stacked(plot);
    let greatest = stacked
        .iter()
        .flatten()
        .filter_map(|point| point.upper)
        .fold(plot.least_top, f64::max);
    let scale = Scale {
        span: plot.span,
        top: nice(greatest),
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        plot.title
    );
    scale.axes(&mut svg);
    for (at, (series, points)) in plot.series.iter().zip(&stacked).enumerate() {
        match plot.shape {
            Shape::Lines => lines(&mut svg, series, points, &scale),
            Shape::Stack => areas(&mut svg, series, points, &scale),
            Shape::Bars => bars(&mut svg, series, points, &scale, at, plot.series.len()),
        }
    }
    svg.push_str("</svg>");
    svg
}

/// A point between what is below it and itself.
#[derive(Clone, Copy)]
struct Point {
    ts: u64,
    lower: f64,
    upper: Option<f64>,
}

fn stacked(plot: &Plot<'_>) -> Vec<Vec<Point>> {
    let mut below: std::collections::BTreeMap<u64, f64> = Default::default();
    let points = |series: &Series| {
        series
            .points
            .iter()
            .filter(|(ts, _)| (plot.span.0..=plot.span.1).contains(ts))
            .map(|(ts, value)| {
                let lower = match plot.shape {
                    Shape::Stack => below.get(ts).copied().unwrap_or(0.0),
                    _ => 0.0,
                };
                let upper = value.map(|value| lower + value);
                below.insert(*ts, upper.unwrap_or(lower));
                Point {
                    ts: *ts,
                    lower,
                    upper,
                }
            })
            .collect()
    };
    plot.series.iter().map(points).collect()
}

/// Runs of points that are known and not too far apart.
fn runs(points: &[Point]) -> Vec<Vec<Point>> {
    let mut steps: Vec<u64> = points
        .windows(2)
        .map(|pair| pair[1].ts.saturating_sub(pair[0].ts))
        .collect();
    steps.sort_unstable();
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(300).max(1);
    let mut runs: Vec<Vec<Point>> = Vec::new();
    let mut before: Option<u64> = None;
    for point in points {
        if point.upper.is_none() {
            before = None;
            continue;
        }
        match (before, runs.last_mut()) {
            (Some(ts), Some(run)) if point.ts.saturating_sub(ts) <= GAP * usual => run.push(*point),
            _ => runs.push(vec![*point]),
        }
        before = Some(point.ts);
    }
    runs
}

fn lines(svg: &mut String, series: &Series, points: &[Point], scale: &Scale) {
    for run in runs(points) {
        let path: Vec<String> = run
            .iter()
            .map(|point| scale.at(point.ts, point.upper.unwrap_or(0.0)))
            .collect();
        match path.as_slice() {
            [one] => {
                let (x, y) = one.split_once(',').unwrap_or(("0", "0"));
                let _ = write!(
                    svg,
                    "<circle class=\"dot {}\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>",
                    series.colour
                );
            }
            path => {
                let _ = write!(
                    svg,
                    "<polyline class=\"line {}\" points=\"{}\"/>",
                    series.colour,
                    path.join(" ")
                );
            }
        }
    }
}

fn areas(svg: &mut String, series: &Series, points: &[Point], scale: &Scale) {
    for run in runs(points) {
        let upper = run
            .iter()
            .map(|point| scale.at(point.ts, point.upper.unwrap_or(0.0)));
        let lower = run
            .iter()
            .rev()
            .map(|point| scale.at(point.ts, point.lower));
        let path: Vec<String> = upper.chain(lower).collect();
        let _ = write!(
            svg,
            "<polygon class=\"area {}\" points=\"{}\"/>",
            series.colour,
            path.join(" ")
        );
    }
}

fn bars(svg: &mut String, series: &Series, points: &[Point], scale: &Scale, at: usize, of: usize) {
    let slot = (WIDTH - LEFT) / points.len().max(1) as f64;
    let width = (slot * 0.8 / of as f64).max(1.0);
    for point in points {
        let Some(value) = point.upper.filter(|value| *value > 0.0) else {
            continue;
        };
        let x = scale.x(point.ts) - slot + slot * 0.1 + width * at as f64;
        let y = scale.y(value);
        let _ = write!(
            svg,
            "<rect class=\"area {}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{}: {value:.0}</title></rect>",
            series.colour,
            HEIGHT - BOTTOM - y,
            series.name
        );
    }
}

struct Scale {
    span: (u64, u64),
    top: f64,
}

impl Scale {
    fn x(&self, ts: u64) -> f64 {
        let (begin, end) = self.span;
        let part = ts.saturating_sub(begin) as f64 / end.saturating_sub(begin).max(1) as f64;
        LEFT + part * (WIDTH - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value / self.top).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    }

    fn at(&self, ts: u64, value: f64) -> String {
        format!("{:.1},{:.1}", self.x(ts), self.y(value))
    }

    fn axes(&self, svg: &mut String) {
        for quarter in 0..=4 {
            let value = self.top * f64::from(quarter) / 4.0;
            let y = self.y(value);
            let digits = if self.top < 4.0 { 2 } else { 0 };
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{value:.digits$}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let (begin, end) = self.span;
        for quarter in 0..=4u64 {
            let ts = begin + (end - begin) * quarter / 4;
            let (text, anchor) = match quarter {
                0 => (ago(end - ts), "start"),
                4 => ("now".to_owned(), "end"),
                _ => (ago(end - ts), "middle"),
            };
            let _ = write!(
                svg,
                "<text class=\"time {anchor}\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                self.x(ts),
                HEIGHT - 5.0
            );
        }
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..3600 => format!("{} min ago", seconds / 60),
        _ => format!("{} h ago", seconds / 3600),
    }
}

/// The next number that can be quartered and read.
fn nice(value: f64) -> f64 {
    let magnitude = 10f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 4.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * magnitude)
        .find(|top| *top >= value * 0.999_999)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(shape: Shape, series: Vec<Series>) -> Plot<'static> {
        Plot {
            title: "t",
            unit: "u",
            span: (0, 1000),
            shape,
            least_top: 1.0,
            series,
        }
    }

    fn series(points: &[(u64, Option<f64>)]) -> Series {
        Series {
            name: "s",
            colour: "heavy",
            points: points.to_vec(),
        }
    }

    #[test]
    fn a_line_breaks_where_nothing_is_known() {
        let known = |ts| (ts, Some(1.0));
        let html = figure(&plot(
            Shape::Lines,
            vec![series(&[
                known(0),
                known(100),
                (200, None),
                known(300),
                known(400),
                known(900),
                known(5000),
            ])],
        ));
        // Two lines and, far from both, a dot; nothing outside of the span.
        assert_eq!(
            (
                html.matches("<polyline").count(),
                html.matches("<circle").count()
            ),
            (2, 1),
            "{html}"
        );
    }

    #[test]
    fn areas_lie_on_top_of_each_other() {
        let html = figure(&plot(
            Shape::Stack,
            vec![
                series(&[(0, Some(100.0)), (1000, Some(100.0))]),
                series(&[(0, Some(300.0)), (1000, Some(100.0))]),
            ],
        ));
        assert!(
            html.contains(">400</text>") && html.matches("<polygon").count() == 2,
            "{html}"
        );
        // The upper one begins at the top of the axis and ends on the lower one.
        assert!(
            html.contains("points=\"52.0,8.0 960.0,93.0 960.0,135.5 52.0,135.5\""),
            "{html}"
        );
    }

    #[test]
    fn what_is_unknown_is_said_and_not_drawn() {
        let html = figure(&plot(Shape::Lines, vec![series(&[(0, None)])]));
        assert!(
            html.contains("not known") && !html.contains("<svg"),
            "{html}"
        );
    }

    #[test]
    fn an_axis_ends_at_a_number_that_can_be_read() {
        assert_eq!(
            [0.3, 1.0, 3.0, 390.0, 401.0, 850.0].map(nice),
            [0.4, 1.0, 4.0, 400.0, 800.0, 1000.0]
        );
    }
}
