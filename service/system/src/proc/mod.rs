//! `/proc` readers below a root.
