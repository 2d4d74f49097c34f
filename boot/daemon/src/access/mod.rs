//! Who may call what.

mod gate;
mod table;

pub use gate::Gate;
