//! Tests of settings.

mod example;
mod mistakes;
mod precedence;
mod shadow;
mod watch;

use super::{Layer, Loaded, Sources, load};

fn layer(origin: &str, text: &str) -> Layer {
    Layer {
        origin: origin.to_owned(),
        text: text.to_owned(),
    }
}

/// One file, and no variable.
fn file(text: &str) -> Sources {
    Sources {
        files: vec![layer("guard.toml", text)],
        env: Vec::new(),
    }
}

fn env(variables: &[(&str, &str)]) -> Sources {
    Sources {
        files: Vec::new(),
        env: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

fn good(sources: &Sources) -> Loaded {
    load(sources).unwrap_or_else(|errors| panic!("\n{errors}"))
}

fn errors(sources: &Sources) -> String {
    load(sources).expect_err("a mistake").to_string()
}

fn origin<'a>(loaded: &'a Loaded, key: &str) -> (&'a str, &'a str) {
    let found = loaded
        .effective
        .iter()
        .find(|effective| effective.key == key);
    found.map_or(("", ""), |effective| {
        (effective.value.as_str(), effective.origin.as_str())
    })
}
