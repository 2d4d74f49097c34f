//! What heavy work asks for.

/// One workload's load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Its adaptive score, 0 to 1, where adaptive routing has one.
    pub score: Option<f64>,
    /// Its CPU, in percent of one logical CPU.
    pub cpu: f64,
}

/// The demand, 0 to 1: the most that a workload asks for (its adaptive score, else its CPU against the
/// threshold), or how much of its quota the heavy slice uses, whichever is more.
///
/// `usage` and `quota` are in percent of one logical CPU; without a quota the slice is not short of one.
pub fn demand(
    loads: impl IntoIterator<Item = Load>,
    cpu_threshold: f64,
    usage: Option<f64>,
    quota: Option<f64>,
) -> f64 {
    let of_load = |load: Load| -> f64 { load.score.unwrap_or(load.cpu / cpu_threshold.max(100.0)) };
    let of_slice = match (usage, quota) {
        (Some(usage), Some(quota)) => usage / quota.max(100.0),
        _ => 0.0,
    };
    loads
        .into_iter()
        .map(of_load)
        .fold(of_slice, f64::max)
        .clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: f64) -> Load {
        Load { score: None, cpu }
    }

    #[test]
    fn the_most_demanding_counts() {
        assert_eq!(demand([], 70.0, None, None), 0.0);
        assert_eq!(demand([cpu(35.0), cpu(50.0)], 70.0, None, None), 0.5);
        assert_eq!(demand([cpu(50.0)], 200.0, None, None), 0.25);
        assert_eq!(demand([cpu(350.0)], 70.0, None, None), 1.0);
        assert_eq!(demand([cpu(10.0)], 70.0, Some(150.0), Some(200.0)), 0.75);
        // A small quota does not make a small use a great demand.
        assert_eq!(demand([], 70.0, Some(20.0), Some(50.0)), 0.2);
        assert_eq!(demand([], 70.0, Some(500.0), None), 0.0);
    }

    #[test]
    fn an_adaptive_score_replaces_the_cpu_of_its_workload() {
        let scored = Load {
            score: Some(0.3),
            cpu: 100.0,
        };
        assert_eq!(demand([scored], 70.0, None, None), 0.3);
        assert_eq!(demand([scored, cpu(60.0)], 70.0, None, None), 0.6);
    }
}
