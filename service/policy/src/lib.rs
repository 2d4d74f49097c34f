//! The guard's decisions, pure: no I/O, no thread, no clock. Time and text are arguments.
//!
//! [`engine::Engine::step`] takes one [`event::Event`] and answers the [`action::Action`]s that should
//! follow; the daemon carries them out and reports each outcome as another event.

pub mod action;
pub mod budget;
pub mod class;
pub mod eligibility;
pub mod engine;
pub mod event;
pub mod health;
pub mod holds;
pub mod id;
pub mod printable;
pub mod quota;
pub mod reconcile;
pub mod rules;
pub mod settings;
pub mod shadow;
pub mod source;
