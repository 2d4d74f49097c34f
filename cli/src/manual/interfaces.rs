//! The pages of the interfaces on the bus, from their introspection XML and the documentation in it.

use roxmltree::{Document, Node};
use workload_guard_dbus::names::{BENCH_NAME, BENCH_PATH, GUARD_NAME, GUARD_PATH};

use super::troff::Page;

/// The page of an interface.
pub fn page(name: &str, xml: &str) -> String {
    let document = Document::parse(xml).expect("a test parses every file");
    let bench = name == BENCH_NAME;
    let (bus, service, path) = match bench {
        true => ("system", BENCH_NAME, BENCH_PATH),
        false => ("user", GUARD_NAME, GUARD_PATH),
    };
    let path = match name {
        "org.workloadguard.Workload1" => format!("{path}/workload/..."),
        _ => path.to_owned(),
    };
    let mut page = Page::new(name, 5, &format!("a D-Bus interface of {service}"));
    page.section("SYNOPSIS");
    let user = if bench { "--system" } else { "--user" };
    page.text(&format!("busctl {user} introspect {service} {path} {name}"));
    page.section("DESCRIPTION");
    page.text(&format!(
        "The service {service} is on the {bus} bus and is started by a call. A member that was released keeps its \
         signature."
    ));
    for (kind, heading) in [
        ("method", "METHODS"),
        ("signal", "SIGNALS"),
        ("property", "PROPERTIES"),
    ] {
        let members: Vec<_> = members(&document)
            .filter(|(node, _)| node.has_tag_name(kind))
            .collect();
        if members.is_empty() {
            continue;
        }
        page.section(heading);
        for (node, docs) in members {
            page.item(&signature(node), &prose(&docs));
        }
    }
    page.section("SEE ALSO");
    page.text(match bench {
        true => "workload-guard-bench(1), machine.toml(5), busctl(1)",
        false => "workload-guard(1), workload-guardd(8), busctl(1)",
    });
    page.done()
}

/// Each member with the comment above it.
fn members<'a>(document: &'a Document<'a>) -> impl Iterator<Item = (Node<'a, 'a>, String)> {
    let mut docs = String::new();
    document.root_element().children().filter_map(move |node| {
        if node.is_comment() {
            docs = node.text().unwrap_or_default().to_owned();
        }
        node.is_element().then(|| (node, std::mem::take(&mut docs)))
    })
}

/// `Attach(au pids, s class) -> o workload`
fn signature(node: Node<'_, '_>) -> String {
    let name = node.attribute("name").unwrap_or_default();
    if node.has_tag_name("property") {
        let access = match node.attribute("access") {
            Some("read") => "read only",
            _ => "readable and writable",
        };
        let changes = node
            .children()
            .find(|child| {
                child.attribute("name") == Some("org.freedesktop.DBus.Property.EmitsChangedSignal")
            })
            .and_then(|annotation| annotation.attribute("value"));
        let changes = match changes {
            Some("const") => ", never changes",
            Some("false") => ", changes are not told",
            _ => "",
        };
        let type_ = node.attribute("type").unwrap_or_default();
        return format!("{name} ({type_}; {access}{changes})");
    }
    let args = |out: bool| {
        let args: Vec<String> = node
            .children()
            .filter(|arg| arg.has_tag_name("arg"))
            .filter(|arg| (arg.attribute("direction") == Some("out")) == out)
            .map(|arg| {
                let part = |name| arg.attribute(name).unwrap_or_default();
                format!("{} {}", part("type"), part("name"))
            })
            .collect();
        args.join(", ")
    };
    match args(true).as_str() {
        "" => format!("{name}({})", args(false)),
        out => format!("{name}({}) -> {out}", args(false)),
    }
}

/// The documentation: its indent is the XML's, and each argument is a paragraph.
fn prose(docs: &str) -> String {
    let mut text = String::new();
    for line in docs.lines().map(str::trim) {
        if line.starts_with('@') && !text.ends_with("\n\n") {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use workload_guard_dbus::xml::INTERFACES;

    use super::super::troff::{seen, words};
    use super::*;

    #[test]
    fn every_member_is_on_the_page_with_its_arguments_and_its_documentation() {
        for (name, xml) in INTERFACES {
            let page = seen(&page(name, xml));
            let document = Document::parse(xml).unwrap();
            let mut count = 0;
            for (node, docs) in members(&document) {
                let member = node.attribute("name").unwrap();
                assert!(page.contains(member), "{name}: {member}");
                assert!(!docs.is_empty(), "{name}.{member} is not documented");
                assert!(
                    page.contains(&words(&docs)),
                    "{name}.{member}: {docs}\n{page}"
                );
                for arg in node.children().filter(|arg| arg.has_tag_name("arg")) {
                    let part = |name| arg.attribute(name).unwrap();
                    let arg = format!("{} {}", part("type"), part("name"));
                    assert!(page.contains(&arg), "{name}.{member}: {arg}");
                }
                count += 1;
            }
            assert!(count > 0, "{name} has no member");
        }
    }

    #[test]
    fn a_signature_names_what_goes_in_and_what_comes_out() {
        let xml = r#"<interface><!-- Does. --><method name="Do"><arg name="a" type="u" direction="in"/>
            <arg name="b" type="s" direction="out"/></method></interface>"#;
        let document = Document::parse(xml).unwrap();
        let (node, docs) = members(&document).next().unwrap();
        assert_eq!(signature(node), "Do(u a) -> s b");
        assert_eq!(prose(&docs), "Does.");
    }
}
