//! Small charts of a line each.

/// From nothing to the most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values by their time as one line of `width` columns from `begin` to `end`: each column is the greatest value of
/// its part, in eighths of `most`, and blank where nothing is known.
pub fn spark(points: &[(u64, f64)], begin: u64, end: u64, width: usize, most: f64) -> String {
    let mut columns: Vec<Option<f64>> = vec![None; width];
    let span = end.saturating_sub(begin).max(1);
    for (ts, value) in points.iter().filter(|(ts, _)| (begin..=end).contains(ts)) {
        let at = ((ts - begin) as u128 * width as u128 / u128::from(span)) as usize;
        let column = &mut columns[at.min(width - 1)];
        *column = Some(column.map_or(*value, |before: f64| before.max(*value)));
    }
    let bar = |value: f64| {
        let part = if most > 0.0 {
            (value / most).clamp(0.0, 1.0)
        } else {
            0.0
        };
        BARS[((part * 8.0).ceil() as usize).saturating_sub(1).min(7)]
    };
    columns
        .into_iter()
        .map(|column| column.map_or(' ', bar))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_the_greatest_of_its_part_and_blank_is_unknown() {
        let points = [
            (0, 0.0),
            (10, 50.0),
            (15, 100.0),
            (40, 1.0),
            (99, 10.0),
            (100, 12.6),
        ];
        assert_eq!(spark(&points, 0, 100, 10, 100.0), "▁█  ▁    ▂");
        assert_eq!(spark(&points, 0, 100, 1, 100.0), "█");
        assert_eq!(spark(&points, 200, 300, 3, 100.0), "   ");
        assert_eq!(spark(&[(5, 0.0)], 5, 5, 2, 0.0), "▁ ");
    }
}
