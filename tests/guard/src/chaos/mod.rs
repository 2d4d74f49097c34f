//! Load that never settles, and who strikes the guard down while it works.

pub mod churn;
pub mod held;
pub mod killer;
