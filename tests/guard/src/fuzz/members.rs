//! What a service offers, by its own word: so that members which are added later are called as well.

use anyhow::{Context, Result};
use zbus::{Connection, block_on};
use zvariant::Signature;

use super::{SERVICE, type_of};

/// Something that can be called, read or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Object path.
    pub path: String,
    /// Interface.
    pub interface: String,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A method, with the types of its arguments.
    Method(Vec<Signature>),
    /// A property, with its type.
    Property(Signature),
}

/// Every member of every object below `/`.
pub fn all(bus: &Connection) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    let mut paths = vec!["/".to_owned()];
    while let Some(path) = paths.pop() {
        let reply = block_on(bus.call_method(
            Some(SERVICE),
            path.as_str(),
            Some("org.freedesktop.DBus.Introspectable"),
            "Introspect",
            &(),
        ));
        // A workload's object may be gone by now.
        let Ok(reply) = reply else { continue };
        let xml: String = reply.body().deserialize()?;
        let (members, children) = parse(&path, &xml)?;
        found.extend(members);
        let base = path.trim_end_matches('/');
        paths.extend(children.iter().map(|child| format!("{base}/{child}")));
    }
    Ok(found)
}

/// The members of one object, and the names of the objects right below it, whose members may be told in
/// the same breath and are asked for on their own. Reads what zbus and sd-bus write:
/// tags with quoted attributes, and comments.
fn parse(path: &str, xml: &str) -> Result<(Vec<Member>, Vec<String>)> {
    let mut members: Vec<Member> = Vec::new();
    let mut children = Vec::new();
    let mut interface = String::new();
    let mut depth = 0;
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let end = if rest.starts_with("<!--") { "-->" } else { ">" };
        let length = rest.find(end).context("a tag without an end")? + end.len();
        let tag = &rest[..length];
        rest = &rest[length..];
        let name = || attribute(tag, "name").map(str::to_owned);
        let member = |kind| {
            Some(Member {
                path: path.to_owned(),
                interface: interface.clone(),
                name: name()?,
                kind,
            })
        };
        if tag.starts_with("</node") {
            depth -= 1;
        }
        if tag.starts_with("<node") {
            if depth == 1 {
                children.extend(name());
            }
            if !tag.ends_with("/>") {
                depth += 1;
            }
        }
        if depth != 1 {
            continue;
        }
        let word = tag[1..].split(|c: char| !c.is_ascii_alphabetic()).next();
        match word {
            Some("interface") => interface = name().context("an interface without a name")?,
            Some("method") => members.extend(member(Kind::Method(Vec::new()))),
            Some("property") => {
                let kind = attribute(tag, "type").context("a property without a type")?;
                members.extend(member(Kind::Property(type_of(kind)?)));
            }
            Some("arg") if attribute(tag, "direction") == Some("in") => {
                let kind = attribute(tag, "type").context("an argument without a type")?;
                if let Some(Kind::Method(arguments)) =
                    members.last_mut().map(|member| &mut member.kind)
                {
                    arguments.push(type_of(kind)?);
                }
            }
            _ => {}
        }
    }
    Ok((members, children))
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_introspection() -> Result<()> {
        let xml = r#"<!DOCTYPE node PUBLIC "x" "y">
            <node><interface name="a.B">
              <!-- <method name="NotThis"> -->
              <method name="Do"><arg name="x" type="au" direction="in"/>
                <arg name="y" type="s" direction="out"/><arg type="a{sv}" direction="in"/></method>
              <signal name="Heard"><arg name="z" type="s"/></signal>
              <property name="P" type="t" access="read"/>
            </interface><node name="child"/><node name="other">
              <interface name="a.C"><method name="Elsewhere"/></interface><node name="grandchild"/></node></node>"#;
        let (members, children) = parse("/o", xml)?;
        assert_eq!(children, ["child", "other"]);
        let kinds: Vec<_> = members.iter().map(|m| (m.name.as_str(), &m.kind)).collect();
        let arguments = vec![type_of("au")?, type_of("a{sv}")?];
        assert_eq!(
            kinds,
            [
                ("Do", &Kind::Method(arguments)),
                ("P", &Kind::Property(Signature::U64)),
            ]
        );
        Ok(())
    }
}
