//! Tests of rules: the shipped ones on real command lines, and files that are wrong.

mod files;
mod lines;
