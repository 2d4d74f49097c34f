//! The introspection XML of the interfaces, with their documentation in comments.

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../xml/", $name, ".xml")))),+]
    };
}

/// Each interface with its XML, which tests compare with what the objects serve.
pub const INTERFACES: &[(&str, &str)] = files![
    "org.workloadguard.Guard1",
    "org.workloadguard.Workload1",
    "org.workloadguard.Quota1",
    "org.workloadguard.History1",
    "org.workloadguard.Profile1",
    "org.workloadguard.BenchPrep1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/xml");
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            let name = file.strip_suffix(".xml").unwrap();
            assert!(INTERFACES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
