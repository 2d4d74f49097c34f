//! Signals of systemd.
