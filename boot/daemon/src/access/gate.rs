//! Asks the bus who calls, and polkit whether that one may.

use std::collections::HashMap;

use workload_guard_dbus::BenchError;
use workload_guard_dbus::bench_prep1::Call;
use workload_guard_dbus::polkit1::{ALLOW_USER_INTERACTION, AuthorityProxy, SYSTEM_BUS_NAME};
use zbus::fdo::DBusProxy;
use zbus::proxy::CacheProperties;
use zvariant::Value;

use super::table::{self, Needs};

/// Lets a call through or refuses it. It holds nothing while a person is asked: other calls go on.
pub struct Gate(pub zbus::Connection);

impl Gate {
    /// Whether this call may be carried out.
    pub async fn pass(&self, call: &Call) -> Result<(), BenchError> {
        let action = match table::needs(&call.member) {
            Some(Needs::Nothing) => return Ok(()),
            Some(Needs::Action(action)) => action,
            None => {
                return Err(BenchError::NotAuthorized(format!(
                    "{} may be called by nobody: it has no entry in the table of members",
                    call.member
                )));
            }
        };
        let Some(sender) = &call.sender else {
            return Err(BenchError::NotAuthorized(
                "the connection has no bus that could tell who calls".into(),
            ));
        };
        let bus = DBusProxy::builder(&self.0)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let uid = bus
            .get_connection_unix_user(sender.as_ref().into())
            .await
            .map_err(|error| {
                BenchError::NotAuthorized(format!("the bus does not tell who calls: {error}"))
            })?;
        // root could do without us whatever this guards; and at early boot no polkitd runs yet.
        if uid != 0 {
            self.ask_polkit(sender.as_str(), action, call.interactive)
                .await?;
        }
        log::info!("{} by uid {uid}", call.member);
        Ok(())
    }

    async fn ask_polkit(
        &self,
        sender: &str,
        action: &str,
        interactive: bool,
    ) -> Result<(), BenchError> {
        let cannot_ask = |error: zbus::Error| {
            BenchError::NotAuthorized(format!(
                "polkit cannot be asked about {action} ({error}): install polkitd, or call as root"
            ))
        };
        let polkit = AuthorityProxy::builder(&self.0)
            .cache_properties(CacheProperties::No)
            .build()
            .await
            .map_err(cannot_ask)?;
        let subject = (
            SYSTEM_BUS_NAME,
            HashMap::from([("name", Value::from(sender))]),
        );
        let flags = if interactive {
            ALLOW_USER_INTERACTION
        } else {
            0
        };
        let (allowed, challenge, _) = polkit
            .check_authorization(&subject, action, &HashMap::new(), flags, "")
            .await
            .map_err(cannot_ask)?;
        match (allowed, challenge) {
            (true, _) => Ok(()),
            (false, true) => Err(BenchError::NotAuthorized(format!(
                "{action} needs an administrator's password, and nobody can be asked for it: the caller did not allow it, \
                 or no polkit agent runs in this session. Call as root, or grant it by a rule in /etc/polkit-1/rules.d"
            ))),
            (false, false) => Err(BenchError::NotAuthorized(format!(
                "polkit does not allow {action} to this user"
            ))),
        }
    }
}
