//! Answers as text or JSON. Pure: width, colour and the time of day are arguments.

mod chart;
mod config;
mod diagnose;
mod explain;
mod follow;
pub mod format;
mod history;
mod holds;
mod profile;
mod quota;
pub mod report;
mod stats;
mod status;
mod style;
mod table;
mod watch;

pub use style::Style;

use crate::call::{Answer, Status};
use crate::follow::News;
use crate::insight::InsightAnswer;

/// What is true when following begins.
pub fn first(status: &Status, json: bool, style: &Style) -> String {
    match json {
        true => follow::first_json(status, style),
        false => status::text(status, style),
    }
}

/// One thing that has happened since.
pub fn news(news: &News, json: bool, style: &Style) -> String {
    follow::news(news, json, style)
}

/// `answer` as it goes to stdout, with its last newline.
pub fn answer(answer: &Answer, json: bool, style: &Style) -> String {
    match answer {
        Answer::Status(status) if json => status::json(status),
        Answer::Status(status) => status::text(status, style),
        Answer::Explained(told) if json => explain::json(told),
        Answer::Explained(told) => explain::text(told, style),
        Answer::Stats(answer) if json => stats::json(answer),
        Answer::Stats(answer) => stats::text(answer, style),
        Answer::Settings(rows) if json => config::json(rows),
        Answer::Settings(rows) => config::text(rows, style),
        Answer::Watched { rows, .. } if json => watch::json(rows),
        Answer::Watched { rows, change } => watch::text(rows, change.as_ref(), style),
        Answer::Quota(quota) if json => quota::json(quota),
        Answer::Quota(quota) => quota::text(quota, style),
        Answer::QuotaIs(percent) => format!("the quota is {}\n", quota::percent(*percent)),
        Answer::Reloaded => "settings read again\n".into(),
        Answer::Moved { pids: 1, class } => {
            format!("1 process and its descendants are in {class}\n")
        }
        Answer::Moved { pids, class } => {
            format!("{pids} processes and their descendants are in {class}\n")
        }
        Answer::Insight(answer) => insight(answer, json, style),
        Answer::Hold(answer) => holds::answer(answer, json, style),
        Answer::Released(cgroup) => format!("back in {cgroup}\n"),
    }
}

fn insight(answer: &InsightAnswer, json: bool, style: &Style) -> String {
    match answer {
        InsightAnswer::History(history) if json => history::json(history),
        InsightAnswer::History(history) => history::text(history, style),
        InsightAnswer::Diagnosis(found) if json => diagnose::json(found),
        InsightAnswer::Diagnosis(found) => diagnose::text(found, style),
        InsightAnswer::Profile(found) if json => to_json(found),
        InsightAnswer::Profile(found) => profile::text(found, style),
        InsightAnswer::Text(text) => text.clone(),
    }
}

/// A value as JSON with its last newline.
pub fn to_json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data can be written as JSON");
    text.push('\n');
    text
}
