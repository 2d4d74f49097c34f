//! TSV files that grow by a row a trial, so that a run that is cut off keeps what it has.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// An open file.
pub struct Table {
    path: PathBuf,
    file: File,
    columns: usize,
}

impl Table {
    /// Begins it, with comments and the names of its columns.
    pub fn create(path: &Path, about: &[String], columns: &[&str]) -> anyhow::Result<Table> {
        let mut table = Table {
            file: File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
            path: path.to_owned(),
            columns: columns.len(),
        };
        for line in about {
            table.line(&format!("# {line}"))?;
        }
        table.line(&columns.join("\t"))?;
        Ok(table)
    }

    /// One row more.
    pub fn row(&mut self, cells: &[String]) -> anyhow::Result<()> {
        assert_eq!(cells.len(), self.columns, "{cells:?}");
        self.line(&cells.join("\t"))
    }

    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        writeln!(self.file, "{text}")
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A number of a cell; empty for none.
pub fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}
