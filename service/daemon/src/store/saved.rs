//! What the routes file says, without trust: it may be torn, or of another version.

use guard_policy::engine::MAX_WORKLOADS;
use serde::Deserialize;

use super::VERSION;
use crate::record::Record;

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
struct Routes {
    /// One by one, so that a bad one does not take the others with it.
    routes: Vec<serde_json::Value>,
}

/// What a routes file holds.
#[derive(Debug, Default)]
pub struct Saved {
    /// The records that can be used.
    pub records: Vec<Record>,
    /// Why each of the others cannot.
    pub refused: Vec<String>,
    /// The file, to the letter.
    pub text: Vec<u8>,
}

/// What the text of a file holds.
///
/// # Errors
///
/// It is none of this version.
pub fn parse(text: Vec<u8>) -> Result<Saved, String> {
    // First, since another version may be different in everything else.
    let version: Version = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if version.version != VERSION {
        return Err(format!("it has version {}, not {VERSION}", version.version));
    }
    let routes: Routes = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if routes.routes.len() > MAX_WORKLOADS {
        return Err(format!("it has more than {MAX_WORKLOADS} routes"));
    }
    let mut saved = Saved::default();
    for (index, value) in routes.routes.into_iter().enumerate() {
        let record = serde_json::from_value::<Record>(value)
            .map_err(|error| error.to_string())
            .and_then(|record| match record.route.unsound() {
                None => Ok(record),
                Some(what) => Err(format!("{what} is not what the guard writes")),
            });
        match record {
            Ok(record) => saved.records.push(record),
            Err(error) => saved.refused.push(format!("route {}: {error}", index + 1)),
        }
    }
    saved.text = text;
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn route(unit: &str) -> serde_json::Value {
        json!({
            "reason": "known-heavy", "unit": unit, "class": "heavy", "placement": "routed",
            "root": { "pid": 1, "start": 2 }, "why": "", "command": "make", "since": 1,
            "cgroup": format!("/heavy.slice/{unit}"),
            "source": {
                "cgroup": "/app.slice/a.scope", "unit": "a.scope", "subcgroup": "",
                "slice": "app.slice", "kind": "scope", "delegated": false,
                "saved": { "settings": [], "known": true },
            },
        })
    }

    fn file(routes: Vec<serde_json::Value>) -> Vec<u8> {
        json!({ "version": VERSION, "routes": routes })
            .to_string()
            .into_bytes()
    }

    const UNIT: &str = "lwg-heavy-routed-1-2.scope";

    #[test]
    fn a_bad_record_does_not_take_the_others_with_it() {
        let mut wrong = route(UNIT);
        wrong["root"] = json!("somebody");
        let mut line_break = route(UNIT);
        line_break["command"] = json!("make\n[Scope]");
        let mut setting = route(UNIT);
        setting["source"]["saved"]["settings"] =
            json!([{ "name": "Description", "value": { "text": "x\nKillMode=none" } }]);
        let foreign = route("dbus.service");
        let other_class = route("lwg-browser-routed-1-2.scope");
        let saved = parse(file(vec![
            wrong,
            line_break,
            route(UNIT),
            setting,
            foreign,
            other_class,
        ]))
        .expect("the file is well-formed");
        assert_eq!(saved.records.len(), 1, "{:?}", saved.refused);
        assert_eq!(saved.refused.len(), 5);
    }

    #[test]
    fn another_version_is_told_as_that_whatever_it_looks_like() {
        let text = json!({ "version": 99, "routes": { "by": "name" } }).to_string();
        let error = parse(text.into_bytes()).expect_err("not ours");
        assert!(error.contains("version 99"), "{error}");
        let whole = file(vec![route(UNIT)]);
        assert!(parse(whole[..whole.len() / 2].to_vec()).is_err());
        assert!(parse(b"[1, 2]".to_vec()).is_err());
        assert!(parse(file(vec![json!(null); MAX_WORKLOADS + 1])).is_err());
    }
}
