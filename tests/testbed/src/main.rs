//! `cargo xtask`: builds and boots real systemds and runs the scenarios in them.

mod guest;

fn main() {}
