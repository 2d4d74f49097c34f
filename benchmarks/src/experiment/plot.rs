//! Plots as SVG: panels with axes, dots, lines and bars of dispersion. No more than the experiments need.

use std::fmt::Write;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 340.0;
/// Around the area of a panel, for its title and the words of its axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;

/// Colours that are told apart also by those who see few (Okabe and Ito).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The first series.
    Blue,
    /// The second one.
    Orange,
    /// What is not counted, and what only guides the eye.
    Grey,
}

impl Colour {
    fn hex(self) -> &'static str {
        match self {
            Colour::Blue => "#0072b2",
            Colour::Orange => "#d55e00",
            Colour::Grey => "#8a8a8a",
        }
    }
}

/// Something in a panel, in its own units.
#[derive(Clone, Debug)]
pub enum Mark {
    /// One trial.
    Dot(f64, f64, Colour),
    /// A series; the last word says whether it is dashed.
    Line(Vec<(f64, f64)>, Colour, bool),
    /// From a low to a high value, at an x.
    Spread(f64, f64, f64, Colour),
    /// A short level line, at an x.
    Level(f64, f64, Colour),
}

/// An x axis.
#[derive(Clone, Debug)]
pub enum X {
    /// From, to, and what is between two ticks.
    Numbers(f64, f64, f64),
    /// At 0, 1, 2 …
    Names(Vec<String>),
}

/// One diagram.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below the x axis.
    pub x_label: String,
    /// Beside the y axis, which starts at 0.
    pub y_label: String,
    /// Its x axis.
    pub x: X,
    /// What is in it, the later over the earlier.
    pub marks: Vec<Mark>,
}

/// Panels side by side, with a title, a legend and a note below.
pub fn svg(title: &str, panels: &[Panel], legend: &[(&str, Colour)], note: &str) -> String {
    let width = WIDTH * panels.len() as f64;
    let height = HEIGHT + 76.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    let mut at = 16.0;
    for (name, colour) in legend {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"42\" r=\"4\" fill=\"{}\"/><text x=\"{:.1}\" y=\"46\">{}</text>",
            at + 4.0,
            colour.hex(),
            at + 14.0,
            escaped(name)
        );
        at += 34.0 + name.chars().count() as f64 * 6.6;
    }
    for (n, panel) in panels.iter().enumerate() {
        let _ = writeln!(
            out,
            "<g transform=\"translate({:.1},48)\">",
            n as f64 * WIDTH
        );
        panel.draw(&mut out);
        out.push_str("</g>\n");
    }
    let _ = writeln!(
        out,
        "<text x=\"16\" y=\"{:.1}\" fill=\"#555\" font-size=\"11\">{}</text>\n</svg>",
        height - 10.0,
        escaped(note)
    );
    out
}

impl Panel {
    fn draw(&self, out: &mut String) {
        let (ticks, top) = ticks(self.highest());
        let (low, high) = match &self.x {
            X::Numbers(from, to, _) => (*from, *to),
            X::Names(names) => (-0.5, names.len() as f64 - 0.5),
        };
        let span = (high - low).max(f64::MIN_POSITIVE);
        let x = |value: f64| LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let text = |out: &mut String, x: f64, y: f64, anchor: &str, more: &str, words: &str| {
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{}</text>",
                escaped(words)
            );
        };
        let line = |out: &mut String,
                    from: (f64, f64),
                    to: (f64, f64),
                    colour: &str,
                    width: f64| {
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
                from.0, from.1, to.0, to.1
            );
        };
        for tick in ticks {
            line(
                out,
                (LEFT, y(tick)),
                (WIDTH - RIGHT, y(tick)),
                "#e4e4e4",
                1.0,
            );
            text(out, LEFT - 8.0, y(tick) + 4.0, "end", "", &short(tick));
        }
        line(out, (LEFT, y(0.0)), (WIDTH - RIGHT, y(0.0)), "#333", 1.0);
        let mut tick_at = |value: f64, words: &str| {
            line(
                out,
                (x(value), y(0.0)),
                (x(value), y(0.0) + 4.0),
                "#333",
                1.0,
            );
            text(out, x(value), y(0.0) + 18.0, "middle", "", words);
        };
        match &self.x {
            X::Numbers(from, to, step) => {
                let count = ((to - from) / step + 1e-9) as usize;
                for n in 0..=count {
                    let value = from + step * n as f64;
                    tick_at(value, &short(value));
                }
            }
            X::Names(names) => {
                for (n, name) in names.iter().enumerate() {
                    tick_at(n as f64, name);
                }
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(out, middle, HEIGHT - 16.0, "middle", "", &self.x_label);
        text(
            out,
            middle,
            TOP - 16.0,
            "middle",
            " font-weight=\"bold\"",
            &self.title,
        );
        let along = (TOP + HEIGHT - BOTTOM) / 2.0;
        text(
            out,
            16.0,
            along,
            "middle",
            &format!(" transform=\"rotate(-90 16 {along:.1})\""),
            &self.y_label,
        );
        for mark in &self.marks {
            match mark {
                Mark::Dot(at, value, colour) => {
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.55\"/>",
                        x(*at),
                        y(*value),
                        colour.hex()
                    );
                }
                Mark::Line(points, colour, dashed) => {
                    let points: Vec<String> = points
                        .iter()
                        .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
                        .collect();
                    let _ = writeln!(
                        out,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>",
                        points.join(" "),
                        colour.hex(),
                        if *dashed {
                            " stroke-dasharray=\"5 4\""
                        } else {
                            ""
                        }
                    );
                }
                Mark::Spread(at, low, high, colour) => {
                    let colour = colour.hex();
                    line(out, (x(*at), y(*low)), (x(*at), y(*high)), colour, 1.5);
                    for end in [low, high] {
                        line(
                            out,
                            (x(*at) - 5.0, y(*end)),
                            (x(*at) + 5.0, y(*end)),
                            colour,
                            1.5,
                        );
                    }
                }
                Mark::Level(at, value, colour) => line(
                    out,
                    (x(*at) - 26.0, y(*value)),
                    (x(*at) + 26.0, y(*value)),
                    colour.hex(),
                    3.0,
                ),
            }
        }
    }

    fn highest(&self) -> f64 {
        let of = |mark: &Mark| match mark {
            Mark::Dot(_, value, _) | Mark::Level(_, value, _) => *value,
            Mark::Spread(_, _, high, _) => *high,
            Mark::Line(points, ..) => points.iter().map(|(_, value)| *value).fold(0.0, f64::max),
        };
        self.marks.iter().map(of).fold(0.0, f64::max)
    }
}

/// Round numbers from 0 to the first at or above `highest`, which is answered too.
fn ticks(highest: f64) -> (Vec<f64>, f64) {
    // Of nothing, an axis to 1.
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let rough = highest / 5.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(power * 10.0);
    let count = (highest / step - 1e-9).ceil().max(1.0) as usize;
    let ticks: Vec<f64> = (0..=count).map(|n| n as f64 * step).collect();
    (ticks, count as f64 * step)
}

fn short(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    rounded.to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_highest_value() {
        assert_eq!(ticks(18.0), (vec![0.0, 5.0, 10.0, 15.0, 20.0], 20.0));
        assert_eq!(ticks(0.5).1, 0.5);
        assert_eq!(ticks(1000.0).1, 1000.0);
        assert_eq!(ticks(0.0).1, 1.0);
    }

    #[test]
    fn values_stand_where_the_axes_say() {
        let panel = Panel {
            title: "a < b".to_owned(),
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            x: X::Names(vec!["off".to_owned(), "on".to_owned()]),
            marks: vec![
                Mark::Dot(0.0, 10.0, Colour::Blue),
                Mark::Dot(1.0, 0.0, Colour::Orange),
            ],
        };
        let text = svg("t", &[panel], &[("all", Colour::Blue)], "n & n");
        let width = WIDTH - LEFT - RIGHT;
        assert!(text.contains(&format!("cx=\"{:.1}\" cy=\"{TOP:.1}\"", LEFT + width / 4.0)));
        assert!(text.contains(&format!(
            "cx=\"{:.1}\" cy=\"{:.1}\"",
            LEFT + width * 3.0 / 4.0,
            HEIGHT - BOTTOM
        )));
        assert!(text.contains("a &lt; b") && text.contains("n &amp; n"));
        assert!(text.trim_end().ends_with("</svg>"));
    }
}
