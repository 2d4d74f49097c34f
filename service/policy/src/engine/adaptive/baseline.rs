//! What one command usually uses: an online mean and variance, and how far a sample is from them.

/// A sample counts at least this much, however small the learning rate.
const LEAST_RATE: f64 = 0.01;
/// A whole CPU, which the first part of the score is measured by.
const A_CPU: f64 = 100.0;
/// The parts of the score: how much it uses, and how much more than usual.
const PARTS: (f64, f64) = (0.65, 0.35);
/// A mean below this counts as this.
const LEAST_MEAN: f64 = 1.0;
/// A spread (twice the deviation) below this counts as this: what is always idle has none.
const LEAST_SPREAD: f64 = 20.0;

/// Mean and variance of a command's CPU, in percent of one logical CPU, from zero on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Samples taken in.
    pub samples: u64,
    /// Their mean; later ones count more.
    pub mean: f64,
    /// Their variance, likewise.
    pub variance: f64,
}

impl Baseline {
    /// Takes a sample in. `rate` is what it counts against what is known.
    pub fn learn(&mut self, cpu: f64, rate: f64) {
        let rate = rate.clamp(LEAST_RATE, 1.0);
        let difference = cpu - self.mean;
        self.mean += rate * difference;
        self.variance = (1.0 - rate) * (self.variance + rate * difference * difference);
        self.samples = self.samples.saturating_add(1);
    }

    /// The standard deviation.
    pub fn deviation(&self) -> f64 {
        self.variance.max(0.0).sqrt()
    }

    /// From 0, as usual and little, to 1, much and much more than usual. `threshold` is that of
    /// sustained CPU.
    pub fn score(&self, cpu: f64, threshold: f64) -> f64 {
        let much = (cpu / threshold.max(A_CPU)).clamp(0.0, 1.0);
        let above = cpu - self.mean.max(LEAST_MEAN);
        let unusual = (above / (2.0 * self.deviation()).max(LEAST_SPREAD)).clamp(0.0, 1.0);
        PARTS.0 * much + PARTS.1 * unusual
    }

    /// Whether these can be values of a baseline: what comes from a file may be anything.
    pub fn is_sound(&self) -> bool {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        sound(self.mean) && sound(self.variance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(cpus: &[f64], rate: f64) -> Baseline {
        let mut baseline = Baseline::default();
        cpus.iter().for_each(|cpu| baseline.learn(*cpu, rate));
        baseline
    }

    #[test]
    fn the_formula_by_hand() {
        let baseline = after(&[100.0, 20.0], 0.5);
        // 0 -> 50, variance 0.5 * (0.5 * 100²) = 2500; then d = -30: 35, 0.5 * (2500 + 0.5 * 900) = 1475.
        assert_eq!(
            baseline,
            Baseline {
                samples: 2,
                mean: 35.0,
                variance: 1475.0
            }
        );
        // 0.65 * 0.8 + 0.35 * (80 - 35) / (2 * 38.406)
        let expected = 0.65 * 0.8 + 0.35 * 45.0 / (2.0 * 1475f64.sqrt());
        assert!((baseline.score(80.0, 70.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn an_idle_command_that_gets_hot_scores_high_and_one_that_is_always_hot_does_not() {
        let idle = after(&[0.0; 50], 0.15);
        assert_eq!(idle.score(100.0, 70.0), 1.0);
        assert_eq!(idle.score(0.0, 70.0), 0.0);
        let hot = after(&[100.0; 200], 0.15);
        assert!((hot.score(100.0, 70.0) - 0.65).abs() < 1e-6);
    }

    #[test]
    fn a_high_threshold_of_sustained_cpu_is_the_measure_of_much() {
        assert_eq!(Baseline::default().score(100.0, 200.0), 0.65 * 0.5 + 0.35);
        assert_eq!(Baseline::default().score(100.0, 10.0), 1.0);
    }

    #[test]
    fn a_rate_beyond_its_bounds_counts_as_the_nearest() {
        assert_eq!(after(&[50.0], 0.0), after(&[50.0], 0.01));
        assert_eq!(after(&[50.0], 7.0), after(&[50.0], 1.0));
    }

    proptest! {
        #[test]
        fn values_stay_within_what_was_seen_and_scores_within_0_and_1(
            cpus in proptest::collection::vec(0.0..6400.0f64, 1..80),
            rate in 0.0..2.0f64,
            cpu in 0.0..6400.0f64,
            threshold in 0.1..12800.0f64,
        ) {
            let baseline = after(&cpus, rate);
            let most = cpus.iter().copied().fold(0.0, f64::max);
            prop_assert!(baseline.is_sound());
            prop_assert!(baseline.mean <= most + 1e-9);
            prop_assert!(baseline.deviation() <= most + 1e-6);
            prop_assert_eq!(baseline.samples, cpus.len() as u64);
            let score = baseline.score(cpu, threshold);
            prop_assert!((0.0..=1.0).contains(&score));
            prop_assert!(baseline.score(cpu + 10.0, threshold) >= score);
        }
    }
}
