//! The CPU of one process at one sample after the other, in percent of one logical CPU.

/// A trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its name.
    pub name: &'static str,
    /// Its samples; the first one is at 0 s.
    pub loads: Vec<f64>,
}

/// Bursts, noise, and load that goes on, each with a calm end.
pub fn traces() -> Vec<Trace> {
    let trace = |name, parts: &[(usize, &[f64])]| Trace {
        name,
        loads: parts
            .iter()
            .flat_map(|(times, loads)| loads.repeat(*times))
            .collect(),
    };
    let idle: &[f64] = &[0.0];
    vec![
        trace("single_spike", &[(1, &[100.0]), (20, idle)]),
        trace("two_sample_burst", &[(2, &[90.0]), (20, idle)]),
        trace("short_noisy_burst", &[(2, &[90.0, 65.0]), (20, idle)]),
        trace("sustained_90", &[(10, &[90.0]), (20, idle)]),
        trace("alternating_76_62", &[(12, &[76.0, 62.0]), (20, idle)]),
        trace("sustained_72", &[(10, &[72.0]), (20, idle)]),
        trace("long_noisy", &[(10, &[90.0, 65.0]), (30, idle)]),
    ]
}
