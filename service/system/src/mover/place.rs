//! Where a control group is, in units of one manager.

/// A control group path, taken apart. Paths are relative to the cgroup mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The unit that owns it; none directly in a slice.
    pub unit: Option<String>,
    /// What is below the unit's own group: empty, or absolute (`/a/b`).
    pub subcgroup: String,
    /// The innermost slice above it; `-.slice` when there is none.
    pub slice: String,
}

/// Takes `cgroup` apart. None when it is outside the manager's own `root`.
///
/// Outermost first: slices, then the unit. What is below belongs to the unit, whatever its name: a
/// container in a delegated scope has units of its own.
pub fn place(root: &str, cgroup: &str) -> Option<Place> {
    let root = root.trim_end_matches('/');
    let inner = cgroup.strip_prefix(root)?.strip_prefix('/')?;
    let mut slice = "-.slice".to_owned();
    let mut parts = inner.split('/');
    while let Some(part) = parts.next() {
        // systemd puts a `_` before names that the kernel could take for a file's.
        let name = part.strip_prefix('_').unwrap_or(part);
        if name.ends_with(".slice") {
            slice = name.to_owned();
            continue;
        }
        let rest: Vec<&str> = parts.collect();
        let subcgroup = rest.iter().map(|part| format!("/{part}")).collect();
        let known = [".scope", ".service", ".socket", ".mount", ".swap"];
        return Some(Place {
            unit: known
                .iter()
                .any(|end| name.ends_with(end))
                .then(|| name.to_owned()),
            subcgroup,
            slice,
        });
    }
    Some(Place {
        unit: None,
        subcgroup: String::new(),
        slice,
    })
}

/// The control group of `unit` in `slice`, as systemd makes it.
pub fn cgroup_of(root: &str, slice: &str, unit: &str) -> String {
    let mut path = root.trim_end_matches('/').to_owned();
    if slice != "-.slice" {
        for part in guard_policy::class::slice_chain(slice) {
            path.push('/');
            path.push_str(&part);
        }
    }
    path.push('/');
    path.push_str(unit);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/user.slice/user-1000.slice/user@1000.service";

    fn at(inner: &str) -> Place {
        place(ROOT, &format!("{ROOT}{inner}")).expect("is inside")
    }

    #[test]
    fn the_unit_is_the_first_that_is_no_slice() {
        let found = at("/app.slice/app-term.slice/vte-1.scope/payload/inner.scope");
        assert_eq!(found.unit.as_deref(), Some("vte-1.scope"));
        assert_eq!(found.slice, "app-term.slice");
        assert_eq!(found.subcgroup, "/payload/inner.scope");
    }

    #[test]
    fn a_process_directly_in_a_slice_has_no_unit() {
        assert_eq!(at("/app.slice").unit, None);
        assert_eq!(at("/app.slice").slice, "app.slice");
        assert_eq!(at("/init.scope").slice, "-.slice");
    }

    #[test]
    fn what_another_manager_owns_is_outside() {
        assert_eq!(
            place(ROOT, "/user.slice/user-1000.slice/session-3.scope"),
            None
        );
        assert_eq!(place(ROOT, "/system.slice/cron.service"), None);
        assert_eq!(
            place(
                ROOT,
                "/user.slice/user-1000.slice/user@1000.service2/a.scope"
            ),
            None
        );
        // A container whose manager is at the root of its own hierarchy.
        assert_eq!(
            place("/", "/app.slice/a.scope")
                .and_then(|p| p.unit)
                .as_deref(),
            Some("a.scope")
        );
    }

    #[test]
    fn a_path_and_its_parts_belong_together() {
        let path = cgroup_of(ROOT, "heavy-workload.slice", "lwg-heavy-routed-1-2.scope");
        assert_eq!(
            path,
            format!("{ROOT}/heavy.slice/heavy-workload.slice/lwg-heavy-routed-1-2.scope")
        );
        let found = place(ROOT, &path).expect("is inside");
        assert_eq!(found.slice, "heavy-workload.slice");
        assert_eq!(
            cgroup_of(ROOT, "-.slice", "a.scope"),
            format!("{ROOT}/a.scope")
        );
    }
}
