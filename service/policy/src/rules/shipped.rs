//! The rules of `config/rules.d`, built in, so that a guard without any file works.

use crate::source::Layer;

macro_rules! shipped {
    ($($file:literal),* $(,)?) => {
        &[$((concat!("rules.d/", $file), include_str!(concat!("../../../../config/rules.d/", $file)))),*]
    };
}

const FILES: &[(&str, &str)] = shipped![
    "50-ai.toml",
    "50-containers.toml",
    "50-javascript.toml",
    "50-jvm.toml",
    "50-languages.toml",
    "50-media.toml",
    "50-native.toml",
    "50-python.toml",
    "50-rust.toml",
];

/// The shipped files, to be put before the user's own in [`super::RuleSet::parse`].
pub fn shipped_layers() -> Vec<Layer> {
    let layer = |(origin, text): &(&str, &str)| Layer {
        origin: (*origin).to_owned(),
        text: (*text).to_owned(),
    };
    FILES.iter().map(layer).collect()
}
