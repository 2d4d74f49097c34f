//! Which unit a control group belongs to, by its path alone.

/// A unit in a control group path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitPath<'a> {
    /// Its name.
    pub unit: &'a str,
    /// Its own group.
    pub group: &'a str,
    /// What is below its group: empty, or a path that begins with `/`.
    pub subcgroup: &'a str,
}

/// The unit that a control group belongs to, by name: the innermost `*.scope`, `*.service` or `*.slice`.
pub fn unit_of_cgroup(path: &str) -> Option<UnitPath<'_>> {
    units_of_cgroup(path).next()
}

/// The parts of a control group path that look like units, innermost first.
///
/// A delegated unit names its inner groups as it likes, and a container has units of its own inside
/// one: where this user's manager answers `NoSuchUnit`, the next one outwards is its unit.
pub fn units_of_cgroup(path: &str) -> impl Iterator<Item = UnitPath<'_>> {
    let mut end = path.len();
    std::iter::from_fn(move || {
        loop {
            let start = path[..end].rfind('/')? + 1;
            let (group, subcgroup) = path.split_at(end);
            // systemd puts a `_` before names that the kernel could take for a file's (cpu.service).
            let name = &group[start..];
            let name = name.strip_prefix('_').unwrap_or(name);
            end = start - 1;
            if is_unit_name(name) {
                return Some(UnitPath {
                    unit: name,
                    group,
                    subcgroup,
                });
            }
        }
    })
}

fn is_unit_name(name: &str) -> bool {
    [".scope", ".service", ".slice"]
        .iter()
        .any(|end| name.strip_suffix(end).is_some_and(|stem| !stem.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_innermost_part_that_names_one() {
        let parts =
            |path| unit_of_cgroup(path).map(|found| (found.unit, found.group, found.subcgroup));
        assert_eq!(
            parts("/user.slice/a.scope"),
            Some(("a.scope", "/user.slice/a.scope", ""))
        );
        assert_eq!(
            parts("/u.slice/a.service/x/y"),
            Some(("a.service", "/u.slice/a.service", "/x/y"))
        );
        assert_eq!(parts("/u.slice"), Some(("u.slice", "/u.slice", "")));
        assert_eq!(parts("/"), None);
        assert_eq!(parts(""), None);
        assert_eq!(parts("/docker/.scope"), None);
        assert_eq!(
            parts("/a.slice/_cpu.service"),
            Some(("cpu.service", "/a.slice/_cpu.service", ""))
        );
        let outwards: Vec<_> = units_of_cgroup("/user.slice/box.scope/payload/db.service")
            .map(|found| (found.unit, found.subcgroup))
            .collect();
        assert_eq!(
            outwards,
            [
                ("db.service", ""),
                ("box.scope", "/payload/db.service"),
                ("user.slice", "/box.scope/payload/db.service")
            ]
        );
    }
}
