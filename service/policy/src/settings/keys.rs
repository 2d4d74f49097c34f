//! The one list of keys. To add a key, add an entry here and its comment in `config/guard.toml`.

use std::time::Duration;

use super::kind::{Kind, Value};
use super::{Adaptive, History, Recovery, Routing, Sampling, Settings, Shadow, Watch};
use crate::class::Class;
use crate::quota::{Policy, QuotaSettings};

/// A setting.
pub struct Key {
    /// Dotted name in the TOML files.
    pub name: &'static str,
    /// Its variable, without [`super::variables::PREFIX`].
    pub variable: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The built-in value.
    pub default: fn() -> Value,
    /// Puts a checked value in its place.
    pub apply: fn(&mut Settings, &Value),
}

/// Every CPU of a machine with 1,024 of them, which is more than any that runs a user's session.
pub(super) const ALL_CPUS: f64 = 100.0 * 1024.0;
/// The longest time that makes sense between two attempts.
const A_DAY: f64 = 86_400.0;

/// A quota that can be set exactly.
const WHOLE_PERCENT: Kind = Kind::Count {
    min: 1,
    max: ALL_CPUS as u32,
};
/// A wait of the guard in an interval.
const MILLISECONDS: Kind = Kind::Milliseconds {
    over: 0.0,
    max: 60_000.0,
};

/// Every key with a fixed name. Those of classes are in `class_keys`, since classes are named freely.
pub const KEYS: &[Key] = &[
    Key {
        name: "watch.parent_units",
        variable: "PARENT_UNIT",
        kind: Kind::Slices,
        default: || Value::List(vec!["protected-workload.slice".into()]),
        apply: |s, v| s.watch.parent_units = v.list(),
    },
    Key {
        name: "sampling.interval_sec",
        variable: "SAMPLE_SEC",
        kind: Kind::Seconds {
            min: 0.05,
            max: 3600.0,
        },
        default: || Value::Number(2.0),
        apply: |s, v| s.sampling.interval = v.duration(),
    },
    Key {
        name: "routing.cpu_threshold",
        variable: "CPU_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(70.0),
        apply: |s, v| s.routing.cpu_threshold = v.number(),
    },
    Key {
        name: "routing.sustained_samples",
        variable: "SUSTAINED_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(4),
        apply: |s, v| s.routing.sustained_samples = v.count(),
    },
    Key {
        name: "routing.cooldown_sec",
        variable: "COOLDOWN_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(20.0),
        apply: |s, v| s.routing.cooldown = v.duration(),
    },
    Key {
        name: "routing.exclude_patterns",
        variable: "EXCLUDE_PATTERNS",
        kind: Kind::Strings,
        default: || Value::List(Vec::new()),
        apply: |s, v| s.routing.exclude_patterns = v.list(),
    },
    Key {
        name: "recovery.cpu_threshold",
        variable: "RECOVERY_CPU_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(35.0),
        apply: |s, v| s.recovery.cpu_threshold = v.number(),
    },
    Key {
        name: "recovery.samples",
        variable: "RECOVERY_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(10),
        apply: |s, v| s.recovery.samples = v.count(),
    },
    Key {
        name: "recovery.dwell_sec",
        variable: "RECOVERY_DWELL_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(20.0),
        apply: |s, v| s.recovery.dwell = v.duration(),
    },
    Key {
        name: "adaptive.enabled",
        variable: "ADAPTIVE",
        kind: Kind::Switch,
        default: || Value::Switch(false),
        apply: |s, v| s.adaptive.enabled = v.switch(),
    },
    Key {
        name: "adaptive.route_threshold",
        variable: "ROUTE_THRESHOLD",
        kind: Kind::Fraction,
        default: || Value::Number(0.75),
        apply: |s, v| s.adaptive.route_threshold = v.number(),
    },
    Key {
        name: "adaptive.min_samples",
        variable: "MIN_SAMPLES",
        kind: Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        default: || Value::Count(8),
        apply: |s, v| s.adaptive.min_samples = v.count(),
    },
    Key {
        name: "adaptive.learning_rate",
        variable: "LEARNING_RATE",
        kind: Kind::Fraction,
        default: || Value::Number(0.15),
        apply: |s, v| s.adaptive.learning_rate = v.number(),
    },
    Key {
        name: "adaptive.save_interval_sec",
        variable: "STATS_SAVE_INTERVAL_SEC",
        kind: Kind::Seconds {
            min: 1.0,
            max: A_DAY,
        },
        default: || Value::Number(10.0),
        apply: |s, v| s.adaptive.save_interval = v.duration(),
    },
    Key {
        name: "history.interval_sec",
        variable: "HISTORY_INTERVAL_SEC",
        kind: Kind::Seconds {
            min: 1.0,
            max: A_DAY,
        },
        default: || Value::Number(300.0),
        apply: |s, v| s.history.interval = v.duration(),
    },
    Key {
        name: "shadow.enabled",
        variable: "SHADOW",
        kind: Kind::Switch,
        default: || Value::Switch(false),
        apply: |s, v| s.shadow.enabled = v.switch(),
    },
    Key {
        name: "shadow.ewma_alpha",
        variable: "SHADOW_EWMA_ALPHA",
        kind: Kind::Fraction,
        default: || Value::Number(0.35),
        apply: |s, v| s.shadow.ewma_alpha = v.number(),
    },
    Key {
        name: "shadow.route_threshold",
        variable: "SHADOW_ROUTE_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(70.0),
        apply: |s, v| s.shadow.route_threshold = v.number(),
    },
    Key {
        name: "shadow.clear_threshold",
        variable: "SHADOW_CLEAR_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(35.0),
        apply: |s, v| s.shadow.clear_threshold = v.number(),
    },
    Key {
        name: "shadow.sustained_samples",
        variable: "SHADOW_SUSTAINED_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(4),
        apply: |s, v| s.shadow.sustained_samples = v.count(),
    },
    Key {
        name: "shadow.recovery_samples",
        variable: "SHADOW_RECOVERY_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(10),
        apply: |s, v| s.shadow.recovery_samples = v.count(),
    },
    Key {
        name: "shadow.recovery_dwell_sec",
        variable: "SHADOW_RECOVERY_DWELL_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(20.0),
        apply: |s, v| s.shadow.recovery_dwell = v.duration(),
    },
    Key {
        name: "quota.dynamic",
        variable: "DYNAMIC_QUOTA",
        kind: Kind::Switch,
        default: || Value::Switch(false),
        apply: |s, v| s.quota.dynamic = v.switch(),
    },
    Key {
        name: "quota.policy",
        variable: "QUOTA_POLICY",
        kind: Kind::Word(&["step", "protected"]),
        default: || Value::Word("step"),
        apply: |s, v| s.quota.policy = v.word().parse().unwrap_or(Policy::Step),
    },
    Key {
        name: "quota.interval_sec",
        variable: "QUOTA_INTERVAL_SEC",
        kind: Kind::Seconds {
            min: 0.2,
            max: 3600.0,
        },
        default: || Value::Number(5.0),
        apply: |s, v| s.quota.interval = v.duration(),
    },
    Key {
        name: "quota.min",
        variable: "QUOTA_MIN",
        kind: WHOLE_PERCENT,
        default: || Value::Count(100),
        apply: |s, v| s.quota.min = v.count(),
    },
    Key {
        name: "quota.max",
        variable: "QUOTA_MAX",
        kind: WHOLE_PERCENT,
        default: || Value::Count(400),
        apply: |s, v| s.quota.max = v.count(),
    },
    Key {
        name: "quota.step",
        variable: "QUOTA_STEP",
        kind: WHOLE_PERCENT,
        default: || Value::Count(50),
        apply: |s, v| s.quota.step = v.count(),
    },
    Key {
        name: "quota.min_dwell_sec",
        variable: "QUOTA_MIN_DWELL_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(10.0),
        apply: |s, v| s.quota.dwell = v.duration(),
    },
    Key {
        name: "quota.pressure_high",
        variable: "QUOTA_PRESSURE_HIGH",
        kind: Kind::Fraction,
        default: || Value::Number(0.4),
        apply: |s, v| s.quota.pressure_high = v.number(),
    },
    Key {
        name: "quota.pressure_low",
        variable: "QUOTA_PRESSURE_LOW",
        kind: Kind::Fraction,
        default: || Value::Number(0.1),
        apply: |s, v| s.quota.pressure_low = v.number(),
    },
    Key {
        name: "quota.throttle_high",
        variable: "QUOTA_THROTTLE_HIGH",
        kind: Kind::Fraction,
        default: || Value::Number(0.1),
        apply: |s, v| s.quota.throttle_high = v.number(),
    },
    Key {
        name: "quota.sched_delay_high_ms",
        variable: "QUOTA_SCHED_DELAY_HIGH_MS",
        kind: MILLISECONDS,
        default: || Value::Number(20.0),
        apply: |s, v| s.quota.delay_high = v.number(),
    },
    Key {
        name: "quota.sched_delay_low_ms",
        variable: "QUOTA_SCHED_DELAY_LOW_MS",
        kind: MILLISECONDS,
        default: || Value::Number(5.0),
        apply: |s, v| s.quota.delay_low = v.number(),
    },
    Key {
        name: "quota.aimd_shadow",
        variable: "AIMD_SHADOW",
        kind: Kind::Switch,
        default: || Value::Switch(false),
        apply: |s, v| s.quota.aimd_shadow = v.switch(),
    },
    Key {
        name: "quota.aimd_decrease",
        variable: "AIMD_DECREASE",
        kind: Kind::Fraction,
        default: || Value::Number(0.8),
        apply: |s, v| s.quota.aimd_decrease = v.number(),
    },
    Key {
        name: "quota.aimd_add",
        variable: "AIMD_ADD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(10.0),
        apply: |s, v| s.quota.aimd_add = v.number(),
    },
];

/// The class of browser automation, which has patterns of its own; without them nothing is routed into it.
pub const BROWSER: &str = "browser";

/// Classes that are there without being named, with their slices.
pub const CLASSES: &[(&str, &str)] = &[
    (BROWSER, "browser-automation.slice"),
    ("heavy", "heavy-workload.slice"),
    ("protected", "protected-workload.slice"),
];

/// Classes without which the guard has no work.
pub const FIXED_CLASSES: &[&str] = &["heavy", "protected"];

/// The built-in settings.
pub fn defaults() -> Settings {
    let mut settings = blank();
    for key in KEYS {
        (key.apply)(&mut settings, &(key.default)());
    }
    settings.classes = CLASSES
        .iter()
        .map(|(name, slice)| Class::new(name, slice))
        .collect();
    settings
}

/// Something for each key to be put into.
fn blank() -> Settings {
    Settings {
        watch: Watch {
            parent_units: Vec::new(),
        },
        sampling: Sampling {
            interval: Duration::ZERO,
        },
        routing: Routing {
            cpu_threshold: 0.0,
            sustained_samples: 0,
            cooldown: Duration::ZERO,
            exclude_patterns: Vec::new(),
        },
        recovery: Recovery {
            cpu_threshold: 0.0,
            samples: 0,
            dwell: Duration::ZERO,
        },
        adaptive: Adaptive {
            enabled: false,
            route_threshold: 0.0,
            min_samples: 0,
            learning_rate: 0.0,
            save_interval: Duration::ZERO,
        },
        history: History {
            interval: Duration::ZERO,
        },
        shadow: Shadow {
            enabled: false,
            ewma_alpha: 0.0,
            route_threshold: 0.0,
            clear_threshold: 0.0,
            sustained_samples: 0,
            recovery_samples: 0,
            recovery_dwell: Duration::ZERO,
        },
        quota: QuotaSettings::default(),
        classes: Vec::new(),
    }
}
