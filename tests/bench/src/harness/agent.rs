//! A polkit agent, as a desktop has one: it is asked in a person's stead.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use zbus::block_on;
use zvariant::{OwnedValue, Value};

const PATH: &str = "/org/workloadguard/scenario/agent";

/// Somebody whom polkit lets decide.
type Identity = (String, HashMap<String, OwnedValue>);

#[zbus::proxy(
    interface = "org.freedesktop.PolicyKit1.Authority",
    default_service = "org.freedesktop.PolicyKit1",
    default_path = "/org/freedesktop/PolicyKit1/Authority",
    gen_blocking = false
)]
trait Authority {
    fn register_authentication_agent(
        &self,
        subject: &(&str, HashMap<&str, Value<'_>>),
        locale: &str,
        object_path: &str,
    ) -> zbus::Result<()>;

    fn authentication_agent_response2(
        &self,
        uid: u32,
        cookie: &str,
        identity: &Identity,
    ) -> zbus::Result<()>;
}

/// An agent for one process; it is gone when this is dropped.
pub struct Agent {
    asked: Arc<Mutex<Vec<String>>>,
    _bus: zbus::Connection,
}

struct Object {
    asked: Arc<Mutex<Vec<String>>>,
    /// Whose process it speaks for.
    uid: u32,
    /// Whether the person agrees.
    agrees: bool,
}

#[zbus::interface(name = "org.freedesktop.PolicyKit1.AuthenticationAgent")]
impl Object {
    #[allow(clippy::too_many_arguments)]
    async fn begin_authentication(
        &self,
        #[zbus(connection)] bus: &zbus::Connection,
        action: String,
        message: String,
        _icon: String,
        _details: HashMap<String, String>,
        cookie: String,
        identities: Vec<Identity>,
    ) -> zbus::fdo::Result<()> {
        self.note(format!("{action}: {message}"));
        let who = identities.first().filter(|_| self.agrees);
        let Some(who) = who else {
            return Ok(());
        };
        // Only root may tell polkit that somebody proved who they are, and scenarios are root.
        let polkit = AuthorityProxy::new(bus).await?;
        // The agent's own user, to polkit 122; the user of the process that it speaks for, to 126.
        for uid in [self.uid, 0] {
            let told = polkit.authentication_agent_response2(uid, &cookie, who);
            if told.await.is_ok() {
                return Ok(());
            }
        }
        self.note("polkit did not believe it".into());
        Ok(())
    }

    fn cancel_authentication(&self, _cookie: String) {}
}

impl Object {
    fn note(&self, what: String) {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
    }
}

impl Agent {
    /// Registers one for the process `pid` of the user `uid`.
    pub fn of(uid: u32, pid: u32, agrees: bool) -> Result<Agent> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let object = Object {
            asked: asked.clone(),
            uid,
            agrees,
        };
        let start = start_time(pid)?;
        let bus = block_on(async {
            let bus = zbus::connection::Builder::system()?
                .serve_at(PATH, object)?
                .build()
                .await?;
            let subject = (
                "unix-process",
                HashMap::from([
                    ("pid", Value::from(pid)),
                    ("start-time", Value::from(start)),
                ]),
            );
            AuthorityProxy::new(&bus)
                .await?
                .register_authentication_agent(&subject, "C", PATH)
                .await?;
            Ok::<_, zbus::Error>(bus)
        })
        .context("polkit takes no agent")?;
        Ok(Agent { asked, _bus: bus })
    }

    /// What it was asked: action and message.
    pub fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Field 22 of /proc/PID/stat, counted behind the name, which may hold blanks.
fn start_time(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(") ").context("no name")?.1;
    Ok(fields
        .split_ascii_whitespace()
        .nth(19)
        .context("no start time")?
        .parse()?)
}
