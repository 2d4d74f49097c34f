//! Moves of process trees between units.
