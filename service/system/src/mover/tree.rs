//! Which processes belong to the tree that is moved.

use std::collections::BTreeSet;

use guard_policy::id::ProcId;

/// A process of the source group and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub id: ProcId,
    /// Its parent's PID.
    pub ppid: u32,
}

/// Those of `members` that descend from a process of `tree`, parents before children.
pub fn descendants(tree: &BTreeSet<u32>, members: &[Member]) -> Vec<ProcId> {
    let mut tree = tree.clone();
    let mut found = Vec::new();
    let mut rest: Vec<&Member> = members
        .iter()
        .filter(|member| !tree.contains(&member.id.pid))
        .collect();
    loop {
        let before = found.len();
        rest.retain(|member| {
            let belongs = tree.contains(&member.ppid);
            if belongs {
                found.push(member.id);
                tree.insert(member.id.pid);
            }
            !belongs
        });
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: u32, ppid: u32) -> Member {
        Member {
            id: ProcId {
                pid,
                start: u64::from(pid),
            },
            ppid,
        }
    }

    fn pids(tree: &[u32], members: &[Member]) -> Vec<u32> {
        let tree = tree.iter().copied().collect();
        descendants(&tree, members)
            .into_iter()
            .map(|id| id.pid)
            .collect()
    }

    #[test]
    fn the_tree_is_found_whatever_the_order() {
        let members = [
            member(30, 20),
            member(20, 10),
            member(11, 1),
            member(12, 11),
            member(31, 20),
        ];
        assert_eq!(pids(&[10], &members), [20, 31, 30]);
    }

    #[test]
    fn a_child_left_behind_by_a_moved_parent_is_found() {
        // 20 was moved already; its child 30 was forked before that.
        assert_eq!(pids(&[10, 20], &[member(30, 20), member(40, 1)]), [30]);
    }

    #[test]
    fn a_loop_that_a_torn_scan_shows_ends() {
        assert!(pids(&[10], &[member(20, 30), member(30, 20)]).is_empty());
        assert_eq!(pids(&[10], &[member(20, 10), member(10, 20)]), [20]);
    }
}
