//! Operation fuzz.
