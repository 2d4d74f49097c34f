//! What would change, as a unified diff.

use similar::TextDiff;

/// How many unchanged lines are shown around a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Three, as is usual.
    Usual,
    /// None: the files are root's, and whoever reads the diff may not be.
    None,
}

/// `before` to `after` of the file `path`; empty when nothing changes. A file that is not there is `None`.
pub fn unified(path: &str, before: Option<&str>, after: Option<&str>, context: Context) -> String {
    if before == after {
        return String::new();
    }
    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default())
        .unified_diff()
        .context_radius(match context {
            Context::Usual => 3,
            Context::None => 0,
        })
        .header(&name("a", before), &name("b", after))
        .to_string()
}
