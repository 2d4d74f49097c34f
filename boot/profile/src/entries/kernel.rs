//! Which kernels are cloned.

use super::{Request, is_machine_id};

/// What is known of a kernel entry.
#[derive(Clone, Debug, Default)]
pub struct Kernel<'a> {
    /// Its title.
    pub title: &'a str,
    /// Where the kernel lies.
    pub path: &'a str,
    /// Where its initial file systems lie.
    pub initrds: Vec<&'a str>,
    /// Other names that it has, such as a version or a file's.
    pub names: Vec<&'a str>,
}

impl Kernel<'_> {
    /// Whether the machine file means this one.
    pub fn is_wanted(&self, request: &Request<'_>) -> bool {
        let wanted = request.machine.kernel_entry_match.as_str();
        let all = [self.title, self.path];
        all.iter()
            .chain(&self.names)
            .any(|name| name.contains(wanted))
    }

    /// Entries for emergencies, snapshots and tests of memory are nobody's benchmark.
    pub fn is_special(&self) -> bool {
        let holds = |text: &str, words: &[&str]| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        let special = ["fallback", "rescue", "recovery", "memtest"];
        holds(self.title, &special)
            || holds(self.path, &["memtest", "limine_history", "rescue"])
            || self.names.iter().any(|name| holds(name, &special))
            || self
                .initrds
                .iter()
                .any(|initrd| holds(initrd, &["fallback", "rescue"]))
    }

    /// The machine id that is a folder of its path or the beginning of a file's name.
    pub fn machine_id(&self) -> Option<&str> {
        self.path
            .split(['/', ':'])
            .flat_map(|part| [Some(part), part.get(..32)])
            .flatten()
            .find(|part| is_machine_id(part))
    }
}
