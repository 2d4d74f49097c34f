//! As `bus-fuzz`, for the full run.

use super::{CONTAINER, Scenario};

pub const SCENARIO: Scenario = Scenario {
    name: "bus-fuzz-long",
    tiers: CONTAINER,
    quick: false,
    full: true,
    exclusive: true,
    timeout_s: 1200,
    run: |session| super::bus_fuzz::fuzz(session, 20_000),
};
