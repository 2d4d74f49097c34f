//! A server and its client without a bus between them; introspection XML, compared and read.

use std::os::unix::net::UnixStream;
use std::path::Path;

use futures_lite::future;
use zbus::connection::Builder;

/// A connection whose objects `serve` adds, and its peer.
pub fn connect(
    serve: impl FnOnce(Builder<'_>) -> zbus::Result<Builder<'_>>,
) -> (zbus::Connection, zbus::Connection) {
    let (server, client) = UnixStream::pair().expect("a socket pair");
    let server = async {
        let server = Builder::async_io_unix_stream(server).server(zbus::Guid::generate())?;
        serve(server.p2p())?.build().await
    };
    let client = Builder::async_io_unix_stream(client).p2p().build();
    async_io::block_on(future::try_zip(server, client)).expect("both ends connect")
}

/// The `<interface>` element of `name`, as the object serves it.
pub fn introspect(client: &zbus::Connection, path: &str, name: &str) -> String {
    let xml: String = async_io::block_on(async {
        client
            .call_method(
                None::<&str>,
                path,
                Some("org.freedesktop.DBus.Introspectable"),
                "Introspect",
                &(),
            )
            .await
            .expect("Introspect answers")
            .body()
            .deserialize()
            .expect("a string")
    });
    let start = xml
        .find(&format!("<interface name=\"{name}\">"))
        .expect("the interface is there");
    let end = start + xml[start..].find("</interface>").expect("it ends") + "</interface>".len();
    let mut out: String = xml[start..end]
        .lines()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).trim_end())
        .collect::<Vec<_>>()
        .join("\n");
    out.push('\n');
    out
}

/// Compares with the file in `xml/`, or writes it.
pub fn compare(name: &str, live: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("xml")
        .join(format!("{name}.xml"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, live).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&file).expect("the golden file is there");
    assert_eq!(live, golden, "{} is not what {name} serves", file.display());
}

/// Every member stands below a comment, and every argument has a name.
pub fn assert_documented(name: &str, xml: &str) {
    let mut after_comment = false;
    for line in xml.lines().map(str::trim) {
        if ["<method", "<signal", "<property"]
            .iter()
            .any(|tag| line.starts_with(tag))
        {
            assert!(after_comment, "{name}: no documentation above {line}");
        }
        if line.starts_with("<arg") {
            assert!(
                line.contains("name=\""),
                "{name}: an argument without a name: {line}"
            );
        }
        after_comment = line.ends_with("-->");
    }
}
