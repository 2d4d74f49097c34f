//! `config/packaging/debian/control`: paragraphs of a source and its packages (deb-src-control(5)). Pure.

use anyhow::{Context, Result, ensure};

/// One paragraph: fields with their values, continuation lines included.
type Paragraph = Vec<(String, String)>;

/// The source's fields that its packages have as well.
const INHERITED: [&str; 3] = ["Maintainer", "Section", "Priority"];

/// What is known of a package once its files are there.
#[derive(Debug)]
pub struct Built<'a> {
    /// Its version.
    pub version: &'a str,
    /// `amd64` and the like.
    pub architecture: &'a str,
    /// What its programs need.
    pub libraries: &'a str,
    /// Kilobytes of its files.
    pub size: u64,
}

/// The control file of the package `name` (deb-control(5)).
pub fn of_package(source: &str, name: &str, built: &Built<'_>) -> Result<String> {
    let paragraphs = parse(source)?;
    let (head, packages) = paragraphs
        .split_first()
        .context("the control file is empty")?;
    let package = packages
        .iter()
        .find(|package| field(package, "Package") == Some(name))
        .with_context(|| format!("the control file has no package {name}"))?;
    let mut text = format!(
        "Package: {name}\nSource: {}\nVersion: {}\nArchitecture: {}\nInstalled-Size: {}\n",
        field(head, "Source").context("the control file names no source")?,
        built.version,
        built.architecture,
        built.size
    )
    .replace(&format!("Source: {name}\n"), "");
    for name in INHERITED {
        if let Some(value) = field(head, name) {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    for (name, value) in package {
        if name == "Package" || name == "Architecture" {
            continue;
        }
        let value = value
            .replace("${version}", built.version)
            .replace("${shlibs:Depends}", built.libraries);
        let value = value.trim_end().trim_end_matches(',');
        if !value.is_empty() {
            ensure!(
                !value.contains("${"),
                "{name} has an unknown variable: {value}"
            );
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    Ok(text)
}

fn field<'a>(paragraph: &'a Paragraph, name: &str) -> Option<&'a str> {
    paragraph
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

fn parse(text: &str) -> Result<Vec<Paragraph>> {
    let mut paragraphs = vec![Paragraph::new()];
    for line in text.lines() {
        let last = paragraphs.last_mut().expect("never empty");
        if line.trim().is_empty() {
            if !last.is_empty() {
                paragraphs.push(Paragraph::new());
            }
        } else if line.starts_with(' ') {
            let (_, value) = last.last_mut().context("a continuation of nothing")?;
            value.push('\n');
            value.push_str(line);
        } else {
            let (name, value) = line
                .split_once(':')
                .with_context(|| format!("no field: {line:?}"))?;
            last.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    Ok(paragraphs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../../../config/packaging/debian/control");

    fn built(libraries: &str) -> Built<'_> {
        Built {
            version: "1.2.3-1",
            architecture: "amd64",
            libraries,
            size: 42,
        }
    }

    #[test]
    fn a_package_has_the_sources_fields_and_its_own() {
        let text = of_package(SHIPPED, "workload-guard-bench", &built("libc6 (>= 2.34)")).unwrap();
        for line in [
            "Package: workload-guard-bench\nSource: workload-guard\nVersion: 1.2.3-1\nArchitecture: amd64\n",
            "\nSection: admin\n",
            "workload-guard-common (= 1.2.3-1), ",
            ", libc6 (>= 2.34)\n",
            "\nDescription: reproducible benchmark profiles",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
    }

    #[test]
    fn a_package_of_its_sources_name_names_none_and_a_static_program_needs_nothing() {
        let text = of_package(SHIPPED, "workload-guard", &built("")).unwrap();
        assert!(
            !text.contains("\nSource:") && !text.contains(",\n"),
            "{text}"
        );
        let text = of_package(SHIPPED, "workload-guard-common", &built("")).unwrap();
        assert!(!text.contains("Depends"), "{text}");
    }

    #[test]
    fn a_package_that_is_not_there_is_named() {
        let error = of_package(SHIPPED, "x", &built(""))
            .unwrap_err()
            .to_string();
        assert!(error.contains('x'), "{error}");
    }
}
