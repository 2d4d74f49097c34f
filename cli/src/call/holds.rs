//! Asks for holds.

use std::collections::HashMap;

use workload_guard_dbus::Guard1Proxy;
use workload_guard_dbus::types::HoldRow;
use zvariant::{OwnedValue, Str};

use crate::error::CliError;
use crate::plan::{HoldCall, Terms};

/// What the guard said of holds.
#[derive(Clone, Debug)]
pub enum HoldAnswer {
    /// Its cookie.
    Taken(u64),
    /// One has ended.
    Ended,
    /// So many pauses have ended.
    Resumed(u32),
    /// All of them.
    List(Vec<HoldRow>),
}

/// Carries out `call`.
pub async fn perform(guard: &Guard1Proxy<'_>, call: &HoldCall) -> Result<HoldAnswer, CliError> {
    Ok(match call {
        HoldCall::Pause(terms) => HoldAnswer::Taken(guard.pause(options(terms)).await?),
        HoldCall::Exempt(pid, terms) => {
            HoldAnswer::Taken(guard.exempt(*pid, options(terms)).await?)
        }
        HoldCall::Pin(pid, terms) => HoldAnswer::Taken(guard.pin(*pid, options(terms)).await?),
        HoldCall::Unhold(id) => {
            guard.release_hold(*id).await?;
            HoldAnswer::Ended
        }
        HoldCall::Resume => HoldAnswer::Resumed(guard.resume().await?),
        HoldCall::List { .. } => HoldAnswer::List(guard.list_holds().await?),
    })
}

/// The options of `Attach`, `Pause` and their like.
pub fn options(terms: &Terms) -> HashMap<String, OwnedValue> {
    let mut options = HashMap::new();
    if let Some(reason) = &terms.reason {
        options.insert("reason".to_owned(), Str::from(reason.clone()).into());
    }
    if let Some(seconds) = terms.seconds {
        options.insert("duration".to_owned(), seconds.into());
    }
    if terms.lease {
        options.insert("lease".to_owned(), true.into());
    }
    options
}
