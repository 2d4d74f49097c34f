//! Wishes to hold something.

use std::collections::HashMap;

use workload_guard_dbus::GuardError;
use zbus::names::OwnedUniqueName;
use zvariant::OwnedValue;

use super::caller::{self, Caller};
use super::command::{Answer, Command, Target};
use super::guard::GuardObject;
use super::options::Options;

/// What is to be held.
pub enum HoldTarget {
    /// Detection and recovery.
    Everything,
    /// Detection, of a tree.
    Exempt(Target),
    /// Recovery, of the workload that a process is in.
    Pin(Target),
}

/// A wish about holds.
pub enum HoldCommand {
    /// Hold.
    Take {
        /// Who wants it, as the bus knows them.
        caller: Caller,
        /// What.
        target: HoldTarget,
        /// Why and how long.
        options: Options,
        /// The cookie.
        answer: Answer<u64>,
    },
    /// End one.
    LetGo {
        /// Its cookie.
        id: u64,
        /// How many ended.
        answer: Answer<u32>,
    },
    /// End every pause.
    Resume {
        /// How many ended.
        answer: Answer<u32>,
    },
}

impl GuardObject {
    pub(super) async fn hold(
        &self,
        caller: Option<OwnedUniqueName>,
        target: HoldTarget,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        let options = Options::try_from(options)?;
        let caller = caller::identify(&self.connection, caller).await?;
        let target = match target {
            HoldTarget::Everything => HoldTarget::Everything,
            HoldTarget::Exempt(target) => HoldTarget::Exempt(target.of_caller(&caller)?),
            HoldTarget::Pin(target) => HoldTarget::Pin(target.of_caller(&caller)?),
        };
        self.commands
            .ask(|answer| {
                Command::Hold(HoldCommand::Take {
                    caller,
                    target,
                    options,
                    answer,
                })
            })
            .await
    }
}
