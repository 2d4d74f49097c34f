//! Chance that can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::outcome::step;

/// The variable that repeats a run: `SCENARIO_SEED=… guard-scenarios run NAME`.
pub const SEED: &str = "SCENARIO_SEED";

/// A sequence that depends on the seed alone (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From the seed in the environment, else from the clock; printed either way.
    pub fn cast() -> Dice {
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            now.as_secs() << 20 | u64::from(now.subsec_micros())
        });
        step(format_args!("{SEED}={seed}"));
        Dice(seed)
    }

    /// Of this seed.
    pub fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Another sequence, for a thread of its own.
    pub fn fork(&mut self) -> Dice {
        Dice(self.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `end` - 1.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// At most so long.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.number() % (most.as_micros() as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let (mut one, mut other) = (Dice(7), Dice(7));
        let (first, second): (Vec<_>, Vec<_>) =
            (0..100).map(|_| (one.below(10), other.below(10))).unzip();
        assert_eq!(first, second);
        assert!(first.iter().any(|n| *n != first[0]) && first.iter().all(|n| *n < 10));
    }
}
