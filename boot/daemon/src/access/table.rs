//! The one table of what each member takes. A member that is not in it is refused.

use workload_guard_dbus::names::{
    ACTION_APPLY, ACTION_NEXT_BOOT, ACTION_REGENERATE, ACTION_RESTORE,
};

/// What a caller needs for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it changes nothing.
    Nothing,
    /// This polkit action.
    Action(&'static str),
}

/// A new method is one line here, its action in polkit/org.workloadguard.policy where it has one, and one line in
/// units/system/dbus-1/org.workloadguard.BenchPrep1.conf.
const TABLE: &[(&str, Needs)] = &[
    ("Apply", Needs::Action(ACTION_APPLY)),
    ("Restore", Needs::Action(ACTION_RESTORE)),
    ("Check", Needs::Nothing),
    ("PreviewBootEntries", Needs::Nothing),
    ("RegenerateBootEntries", Needs::Action(ACTION_REGENERATE)),
    ("SetNextBoot", Needs::Action(ACTION_NEXT_BOOT)),
];

/// What `member` takes; none for a member that nobody may call.
pub fn needs(member: &str) -> Option<Needs> {
    TABLE
        .iter()
        .find(|(name, _)| *name == member)
        .map(|(_, needs)| *needs)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const INTERFACE: &str =
        include_str!("../../../../dbus-interfaces/xml/org.workloadguard.BenchPrep1.xml");
    const POLKIT: &str = include_str!("../../../../polkit/org.workloadguard.policy");
    const BUS: &str =
        include_str!("../../../../units/system/dbus-1/org.workloadguard.BenchPrep1.conf");

    /// The values of an attribute in the lines that hold `tag`.
    fn values<'a>(text: &'a str, tag: &str, attribute: &str) -> BTreeSet<&'a str> {
        let attribute = format!("{attribute}=\"");
        text.lines()
            .filter(|line| line.contains(tag))
            .filter_map(|line| line.split_once(attribute.as_str())?.1.split('"').next())
            .collect()
    }

    #[test]
    fn every_method_of_the_interface_is_in_the_table_and_no_other() {
        let listed: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(values(INTERFACE, "<method ", "name"), listed);
    }

    #[test]
    fn every_action_is_in_the_policy_and_no_other() {
        let actions: BTreeSet<&str> = TABLE
            .iter()
            .filter_map(|(_, needs)| match needs {
                Needs::Action(action) => Some(*action),
                Needs::Nothing => None,
            })
            .collect();
        assert_eq!(values(POLKIT, "<action ", "id"), actions);
        for action in POLKIT.split("<action ").skip(1) {
            assert!(action.contains("<message>") && action.contains("<description>"));
            assert!(
                action.contains("<allow_any>auth_admin</allow_any>"),
                "{action}"
            );
        }
    }

    #[test]
    fn the_bus_lets_the_same_members_through_and_no_other() {
        let rules = BUS
            .split("<policy context=\"default\">")
            .nth(1)
            .expect("rules for everyone");
        let ours: String = rules
            .lines()
            .filter(|line| line.contains("send_interface=\"org.workloadguard.BenchPrep1\""))
            .map(|line| format!("{line}\n"))
            .collect();
        let listed: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(values(&ours, "<allow ", "send_member"), listed);
        assert!(rules.contains("<deny send_destination=\"org.workloadguard.BenchPrep1\"/>"));
    }

    #[test]
    fn a_member_that_is_not_listed_is_nobodys() {
        assert_eq!(needs("Apply"), Some(Needs::Action(ACTION_APPLY)));
        assert_eq!(needs("apply"), None);
        assert_eq!(needs("setnextboot"), None);
        assert_eq!(needs(""), None);
    }
}
