//! Figures of a few numbers.

/// Arithmetic mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation; none of fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The median: for an even count the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// The `q`-quantile (0 to 1) by the nearest-rank rule: a value that occurred.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1).min(sorted.len().checked_sub(1)?))
        .copied()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_numbers() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(deviation(&[1.0, 2.0, 6.0]), Some(7.0_f64.sqrt()));
        assert_eq!(deviation(&[1.0]), None);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.95), Some(95.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        for none in [mean(&[]), deviation(&[]), median(&[]), quantile(&[], 0.5)] {
            assert_eq!(none, None);
        }
    }
}
