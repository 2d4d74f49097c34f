//! Dictionaries with a key for each value that there is (`a{sv}`), from and to what serde writes: what is null
//! has no key, and whole numbers are `t`.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use zvariant::{OwnedValue, Value};

/// A key that is not there has no value.
pub type Dict = HashMap<String, OwnedValue>;

/// `value`, which is a struct, as a dictionary.
pub fn of(value: &impl Serialize) -> Dict {
    match serde_json::to_value(value) {
        Ok(Json::Object(object)) => entries(object),
        _ => HashMap::new(),
    }
}

fn entries(object: Map<String, Json>) -> Dict {
    object
        .into_iter()
        .filter_map(|(key, value)| Some((key, owned(value)?)))
        .collect()
}

fn owned(value: Json) -> Option<OwnedValue> {
    let value: Value<'_> = match value {
        Json::Null => return None,
        Json::Bool(on) => on.into(),
        Json::Number(number) => match number.as_u64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.into(),
        // Lists of structs are all that there are.
        Json::Array(rows) => {
            let rows = rows.into_iter().filter_map(|row| match row {
                Json::Object(object) => Some(entries(object)),
                _ => None,
            });
            rows.collect::<Vec<Dict>>().into()
        }
        Json::Object(object) => entries(object).into(),
    };
    // Only a descriptor could not be owned.
    OwnedValue::try_from(value).ok()
}

/// `dict` as an object; its keys in their alphabetical order.
pub fn to_json(dict: Dict) -> Json {
    let entries = dict.into_iter().map(|(key, value)| (key, json(&value)));
    Json::Object(entries.collect::<Map<String, Json>>())
}

fn json(value: &Value<'_>) -> Json {
    match value {
        Value::Value(inner) => json(inner),
        Value::Bool(on) => (*on).into(),
        Value::U8(number) => (*number).into(),
        Value::U16(number) => (*number).into(),
        Value::U32(number) => (*number).into(),
        Value::U64(number) => (*number).into(),
        Value::I16(number) => (*number).into(),
        Value::I32(number) => (*number).into(),
        Value::I64(number) => (*number).into(),
        Value::F64(number) => (*number).into(),
        Value::Str(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Dict(dict) => dict
            .iter()
            .filter_map(|(key, value)| match key {
                Value::Str(key) => Some((key.to_string(), json(value))),
                _ => None,
            })
            .collect::<Map<String, Json>>()
            .into(),
        // Of a newer guard; nothing here knows what it means.
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        count: u64,
        part: f64,
        missing: Option<f64>,
        inner: Vec<Inner>,
        one: Inner,
    }

    #[derive(Clone, Serialize)]
    struct Inner {
        name: &'static str,
    }

    fn row() -> Row {
        let inner = Inner { name: "x" };
        Row {
            count: 3,
            part: 4.0,
            missing: None,
            inner: vec![inner.clone()],
            one: inner,
        }
    }

    #[test]
    fn each_type_stays_what_it_is() {
        let dict = of(&row());
        let signature = |key: &str| dict[key].value_signature().to_string();
        assert_eq!(
            [
                signature("count"),
                signature("part"),
                signature("inner"),
                signature("one")
            ],
            ["t", "d", "aa{sv}", "a{sv}"]
        );
        assert!(!dict.contains_key("missing"));
    }

    #[test]
    fn what_went_in_comes_out() {
        assert_eq!(
            to_json(of(&row())),
            serde_json::json!({"count": 3, "part": 4.0, "inner": [{"name": "x"}], "one": {"name": "x"}})
        );
    }
}
