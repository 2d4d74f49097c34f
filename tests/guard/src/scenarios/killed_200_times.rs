//! As `killed-40-times`, for the full run.

use super::{CONTAINER, Scenario};

pub const SCENARIO: Scenario = Scenario {
    name: "killed-200-times",
    tiers: CONTAINER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 900,
    run: |session| super::killed_40_times::strike_down(session, 200),
};
