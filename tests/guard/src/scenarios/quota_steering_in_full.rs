//! [`super::quota_steering`] at the pace of the defaults, three rounds of a minute each.

use super::quota_steering::{Pace, steer};
use super::{MACHINE, Scenario};

pub const SCENARIO: Scenario = Scenario {
    name: "quota-steering-in-full",
    tiers: MACHINE,
    quick: false,
    full: true,
    exclusive: true,
    timeout_s: 1500,
    run: |session| {
        steer(
            session,
            &Pace {
                interval: 5.0,
                dwell: 10.0,
                window: 60,
                rounds: 3,
            },
        )
    },
};
