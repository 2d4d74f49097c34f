//! The audit's words. Pure.

use super::judge::Audit;

/// For a person, a line each.
pub fn text(audit: &Audit) -> String {
    let mut text = String::new();
    if audit.interference.is_empty() {
        text.push_str(&format!(
            "interrupts of devices on CPUs {}: none\n",
            audit.cpus
        ));
    } else {
        text.push_str(&format!(
            "INTERFERENCE: interrupts of devices arrived on CPUs {}, so this measurement is invalid:\n",
            audit.cpus
        ));
        for hit in &audit.interference {
            text.push_str(&format!(
                "  IRQ {} on cpu{}: {} times ({}){}\n",
                hit.irq,
                hit.cpu,
                hit.count,
                hit.source,
                if hit.managed {
                    "; managed: the kernel alone places it"
                } else {
                    ""
                }
            ));
        }
    }
    for note in &audit.notes {
        text.push_str(&format!("  note: {}\n", note.text));
    }
    text
}
