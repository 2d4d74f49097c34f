//! Units of systemd and their properties.
