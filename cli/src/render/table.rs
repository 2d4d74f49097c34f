//! Columns.

use super::style::{Style, Tone, fit};

/// Which side of a column its text is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Blanks between two columns.
const GAP: usize = 2;

/// Rows below a heading. The last column is cut where the terminal ends.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[(&'static str, Align)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: a cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell per column");
        self.rows
            .push(cells.iter().map(|cell| fit(cell, None)).collect());
    }

    /// The columns that it needs when nothing is cut.
    pub fn natural_width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// The heading and each row as lines without their newline.
    pub fn lines(&self, style: &Style) -> Vec<String> {
        let widths = self.widths();
        let head: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let mut lines = vec![style.paint(Tone::Head, &self.line(&head, &widths, style.width))];
        lines.extend(
            self.rows
                .iter()
                .map(|row| self.line(row, &widths, style.width)),
        );
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| {
            self.rows
                .iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        };
        self.columns
            .iter()
            .enumerate()
            .map(|(at, (name, _))| widest(at).max(name.len()))
            .collect()
    }

    fn line(&self, cells: &[String], widths: &[usize], width: Option<usize>) -> String {
        let mut line = String::new();
        for ((cell, column_width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            match align {
                Align::Left => line.push_str(&format!("{cell:<column_width$}")),
                Align::Right => line.push_str(&format!("{cell:>column_width$}")),
            }
        }
        fit(line.trim_end(), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(width: Option<usize>) -> Style {
        Style {
            width,
            colour: false,
            now_usec: 0,
        }
    }

    fn table() -> Table {
        let mut table = Table::new(&[("PID", Align::Right), ("COMMAND", Align::Left)]);
        table.row(vec!["7".into(), "make -j8".into()]);
        table.row(vec!["4242".into(), "cc -O2 -c a.c".into()]);
        table
    }

    #[test]
    fn numbers_are_right_and_text_is_left() {
        assert_eq!(
            table().lines(&style(None)),
            [" PID  COMMAND", "   7  make -j8", "4242  cc -O2 -c a.c"]
        );
        assert_eq!(table().natural_width(), 19);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        assert_eq!(table().lines(&style(Some(12)))[2], "4242  cc -O…");
        for width in 1..20 {
            assert!(
                table()
                    .lines(&style(Some(width)))
                    .iter()
                    .all(|line| line.chars().count() <= width)
            );
        }
    }
}
