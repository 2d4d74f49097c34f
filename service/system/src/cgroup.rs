//! Control groups (version 2), read below their mount.
