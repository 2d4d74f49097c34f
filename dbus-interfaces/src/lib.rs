//! The contract of Linux Workload Guard on D-Bus.
//!
//! Each interface is declared once, in a file of its own, over a backend trait: the server, the
//! client proxy, the documentation and the introspection all come from that one block. This crate
//! knows neither the policy's types nor the daemon's.

pub mod bench_error;
pub mod bench_prep1;
pub mod bench_types;
pub mod dict;
pub mod error;
pub mod guard1;
pub mod history1;
pub mod login1;
pub mod names;
pub mod polkit1;
pub mod profile1;
pub mod quota1;
pub mod scope;
pub mod systemd1;
pub mod types;
pub mod workload1;
pub mod xml;

pub use bench_error::BenchError;
pub use bench_prep1::{BenchPrep1, BenchPrep1Backend, BenchPrep1Proxy};
pub use error::GuardError;
pub use guard1::{Guard1, Guard1Backend, Guard1Proxy};
pub use history1::{History1, History1Backend, History1Proxy};
pub use profile1::{Profile1, Profile1Backend, Profile1Proxy};
pub use quota1::{Quota1, Quota1Backend, Quota1Proxy};
pub use workload1::{Workload1, Workload1Backend, Workload1Proxy};
