//! What scenarios are made of: a user session, the guard in it, loads, and ways to wait and to look.

pub mod bus_calls;
pub mod cgroup;
pub mod command;
pub mod dice;
pub mod files;
pub mod guard;
pub mod home;
pub mod journal;
pub mod load;
pub mod outcome;
pub mod proc;
pub mod quota;
pub mod root;
pub mod session;
pub mod signals;
pub mod stats;
pub mod units;
pub mod wait;
