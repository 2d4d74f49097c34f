//! Words for a move.

use guard_policy::action::Why;
use guard_policy::printable::printable;

/// Why, for people.
pub fn text(why: &Why) -> String {
    match why {
        Why::KnownHeavy { rule, .. } => format!("rule {}", rule.name),
        Why::SustainedCpu {
            tree,
            cpu,
            threshold,
            hot_samples,
        } => {
            let whose = if *tree { " in the tree" } else { "" };
            format!("{cpu:.0}% CPU{whose}, at or above {threshold:.0}% for {hot_samples} samples")
        }
        Why::Adaptive {
            command, cpu, mean, ..
        } => format!("{cpu:.0}% CPU, and {command} usually has {mean:.0}%"),
        Why::Asked { reason } if reason.is_empty() => "asked for".to_owned(),
        Why::Asked { reason } => printable(&format!("asked for: {reason}")),
    }
}

/// The Description= of a scope: the command, cut so that the reason stays visible.
///
/// [`printable`] comes last: systemd writes the text raw into a unit file.
pub fn description(command: &str, class: &str, why: &str) -> String {
    const COMMAND: usize = 100;
    let cut: String = command.chars().take(COMMAND).collect();
    let more = if command.chars().count() > COMMAND {
        "…"
    } else {
        ""
    };
    printable(&format!("{cut}{more} [{class}: {why}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_cannot_write_unit_settings() {
        let text = description("a\n[Scope]\nKillMode=none \\", "heavy", "asked for: x\\");
        assert!(!text.contains('\n') && !text.ends_with('\\'), "{text}");
        assert!(
            description(&"x".repeat(5000), "heavy", "rule make").ends_with("… [heavy: rule make]")
        );
    }
}
