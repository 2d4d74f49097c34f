//! OpenMetrics 1.0 text. Only counters, gauges and histograms are written: the node exporter's textfile
//! collector reads those and knows no other type.

use std::fmt::Write;

/// A text in the making.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    text: String,
}

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its samples are named `NAME_total`.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Counts of how long something took.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last one has those above all.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty one, with the upper bounds of its buckets, ascending.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts a value.
    pub fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// A family of samples. `name` ends with `_UNIT` where `unit` is not empty. A family without a sample is
    /// left out: nothing is known of it.
    pub fn family(
        &mut self,
        name: &str,
        kind: Kind,
        unit: &str,
        help: &str,
        samples: &[(Labels<'_>, f64)],
    ) {
        if samples.is_empty() {
            return;
        }
        let (word, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        self.head(name, word, unit, help);
        for (labels, value) in samples {
            self.sample(name, suffix, labels, *value);
        }
    }

    /// A family that is one histogram.
    pub fn histogram(&mut self, name: &str, unit: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", unit, help);
        let mut below = 0;
        for (at, count) in histogram.counts.iter().enumerate() {
            below += count;
            let bound = histogram.bounds.get(at).copied().unwrap_or(f64::INFINITY);
            self.sample(name, "_bucket", &[("le", &float(bound))], below as f64);
        }
        self.sample(name, "_sum", &[], histogram.sum);
        self.sample(name, "_count", &[], below as f64);
    }

    /// The text, with its end.
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }

    fn head(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        debug_assert!(
            unit.is_empty() || name.ends_with(&format!("_{unit}")),
            "{name} has its unit {unit}"
        );
        // To a String; it cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: f64) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(
                self.text,
                "{}{label}=\"{}\"",
                if at == 0 { '{' } else { ',' },
                escaped(text)
            );
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {}", float(value));
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            // A terminal would obey it, and no other line break may be in a line.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn float(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else if value.is_nan() {
        "NaN".to_owned()
    } else {
        // At least one digit behind the point, as bounds must have.
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_specification_shows() {
        let mut text = Exposition::default();
        text.family(
            "wg_routes",
            Kind::Counter,
            "",
            "Routes.",
            &[
                (&[("reason", "known-heavy")], 3.0),
                (&[("reason", "a\"b\\c\nd\x1b")], 0.0),
            ],
        );
        text.family(
            "wg_psi_ratio",
            Kind::Gauge,
            "ratio",
            "Pressure.",
            &[(&[], 0.25)],
        );
        text.family("wg_unknown", Kind::Gauge, "", "Nothing.", &[]);
        let mut moves = Histogram::new(&[0.01, 0.1]);
        for value in [0.01, 0.02, 5.0] {
            moves.observe(value);
        }
        assert_eq!(moves.count(), 3);
        text.histogram("wg_move_seconds", "seconds", "Moves.", &moves);
        assert_eq!(
            text.finish(),
            "# TYPE wg_routes counter\n\
             # HELP wg_routes Routes.\n\
             wg_routes_total{reason=\"known-heavy\"} 3.0\n\
             wg_routes_total{reason=\"a\\\"b\\\\c\\nd\u{fffd}\"} 0.0\n\
             # TYPE wg_psi_ratio gauge\n\
             # UNIT wg_psi_ratio ratio\n\
             # HELP wg_psi_ratio Pressure.\n\
             wg_psi_ratio 0.25\n\
             # TYPE wg_move_seconds histogram\n\
             # UNIT wg_move_seconds seconds\n\
             # HELP wg_move_seconds Moves.\n\
             wg_move_seconds_bucket{le=\"0.01\"} 1.0\n\
             wg_move_seconds_bucket{le=\"0.1\"} 2.0\n\
             wg_move_seconds_bucket{le=\"+Inf\"} 3.0\n\
             wg_move_seconds_sum 5.03\n\
             wg_move_seconds_count 3.0\n\
             # EOF\n"
        );
    }
}
