//! The Debian packages: the files of a part, its maintainer scripts from `config/packaging/debian`, and dpkg-deb(1).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::control::{self, Built};
use crate::host::packages;
use crate::install::{self, Dist, Folders, Part};
use crate::payload::{self, Workspace, libc};
use crate::process;

/// Arguments of `cargo xtask package deb`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The programs are built so that they run on Debian 12 and later: linked statically where this machine's glibc is newer. \
dpkg-deb has to be there, and nothing else. DEBFULLNAME and DEBEMAIL name another maintainer.")]
pub struct Args {
    /// Where the packages go; else `packages` in cargo's target folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Packages what lies in FOLDER instead of building it.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// The part of the version behind the last dash.
    #[arg(long, default_value = "1")]
    revision: String,
    /// How the files are compressed: xz, gzip or none; lintian takes no other.
    #[arg(long, default_value = "xz")]
    compression: String,
    /// Has lintian look for mistakes, and fails where it finds an error; installs it when it may.
    #[arg(long)]
    lint: bool,
}

/// The packages, and the parts that they hold.
const PACKAGES: [(&str, Part); 3] = [
    ("workload-guard-common", Part::Common),
    ("workload-guard", Part::Guard),
    ("workload-guard-bench", Part::Bench),
];
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];
const DATA: &str = "config/packaging/debian";

/// Builds them.
pub fn run(args: &Args) -> Result<()> {
    ensure!(
        packages::find("dpkg-deb").is_some(),
        "dpkg-deb is not here; it is in the package dpkg, which other distributions have as well"
    );
    let (dist, target) = match &args.dist {
        Some(folder) => (Dist::at(folder)?, None),
        None => {
            let workspace = Workspace::locate()?;
            let programs = payload::build_for(&workspace, libc::DEBIAN_12)?;
            let dist = Dist::new(programs, workspace.workspace_root);
            (dist, Some(workspace.target_directory))
        }
    };
    let out = match (&args.out, target) {
        (Some(out), _) => out.clone(),
        (None, Some(target)) => target.join("packages"),
        (None, None) => PathBuf::from("."),
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let built = PACKAGES
        .iter()
        .map(|(name, part)| package(name, *part, &dist, args, &out))
        .collect::<Result<Vec<_>>>()?;
    if args.lint {
        lint(&built)?;
    }
    for path in built {
        println!("{}", path.display());
    }
    Ok(())
}

fn package(name: &str, part: Part, dist: &Dist, args: &Args, out: &Path) -> Result<PathBuf> {
    let version = format!("{}-{}", env!("CARGO_PKG_VERSION"), args.revision);
    let architecture = architecture()?;
    let folder = tempfile::Builder::new()
        .prefix("package-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()?;
    let root = folder.path();
    let items = install::packaged(&Folders::debian(), &[part], dist)?;
    let conffiles: String = items
        .iter()
        .filter(|item| item.target.starts_with("/etc"))
        .map(|item| format!("{}\n", item.target.display()))
        .collect();
    let libraries = libraries(root, items)?;
    documentation(root, name, &version, dist)?;
    if libraries.is_empty() {
        let overrides = root.join("usr/share/lintian/overrides");
        fs::create_dir_all(&overrides)?;
        let text = format!(
            "# It runs on older C libraries than that of the machine that built it.\n{name}: statically-linked-binary\n"
        );
        fs::write(overrides.join(name), text)?;
    }
    compress(root)?;

    let control = root.join("DEBIAN");
    let sums = sums(root)?;
    fs::create_dir(&control)?;
    fs::write(control.join("md5sums"), sums)?;
    if !conffiles.is_empty() {
        fs::write(control.join("conffiles"), conffiles)?;
    }
    for script in SCRIPTS {
        let Ok(bytes) = dist.data(&format!("{DATA}/{name}.{script}")) else {
            continue;
        };
        let path = control.join(script);
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    let source = text(dist, "control")?;
    let built = Built {
        version: &version,
        architecture: &architecture,
        libraries: &libraries,
        size: kilobytes(root)?,
    };
    fs::write(
        control.join("control"),
        control::of_package(&with_maintainer(&source), name, &built)?,
    )?;
    let path = out.join(format!("{name}_{version}_{architecture}.deb"));
    process::output_of(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(format!("-Z{}", args.compression))
            .arg(root)
            .arg(&path),
    )?;
    Ok(path)
}

fn architecture() -> Result<String> {
    let text = process::output_of(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(text.trim().to_owned())
}

fn text(dist: &Dist, name: &str) -> Result<String> {
    Ok(String::from_utf8(dist.data(&format!("{DATA}/{name}"))?)?)
}

/// As devscripts' variables have it.
fn with_maintainer(text: &str) -> String {
    const OURS: (&str, &str) = ("Linux Workload Guard authors", "packages@workloadguard.org");
    let or = |name: &str, ours: &str| std::env::var(name).unwrap_or_else(|_| ours.to_owned());
    text.replace(
        &format!("{} <{}>", OURS.0, OURS.1),
        &format!("{} <{}>", or("DEBFULLNAME", OURS.0), or("DEBEMAIL", OURS.1)),
    )
}

/// Writes the files; answers the packages that the programs among them need.
fn libraries(root: &Path, items: Vec<install::Item>) -> Result<String> {
    let needed: Vec<_> = items
        .iter()
        .filter_map(|item| item.program())
        .map(libc::needed_by)
        .collect();
    install::stage_below(root, items)?;
    let newest = needed.iter().flatten().max();
    Ok(newest.map_or_else(String::new, |version| {
        format!("libc6 (>= {version}), libgcc-s1")
    }))
}

fn documentation(root: &Path, name: &str, version: &str, dist: &Dist) -> Result<()> {
    let folder = root.join("usr/share/doc").join(name);
    fs::create_dir_all(&folder)?;
    let changelog = with_maintainer(&text(dist, "changelog")?).replace("@VERSION@", version);
    fs::write(folder.join("changelog.Debian"), changelog)?;
    fs::write(folder.join("copyright"), text(dist, "copyright")?)?;
    if name == "workload-guard-common" {
        fs::write(folder.join("changelog"), dist.data("CHANGELOG.md")?)?;
    }
    Ok(())
}

/// Manual pages and changelogs, as Debian has them.
fn compress(root: &Path) -> Result<()> {
    for path in walk(&root.join("usr/share"))? {
        let text = path.to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !text.contains("/share/man/") && !name.starts_with("changelog") {
            continue;
        }
        if let Ok(to) = fs::read_link(&path) {
            fs::remove_file(&path)?;
            symlink(
                format!("{}.gz", to.display()),
                path.with_file_name(format!("{name}.gz")),
            )?;
        } else {
            process::output_of(Command::new("gzip").args(["-9", "-n"]).arg(&path))?;
        }
    }
    Ok(())
}

/// Every file and link below a folder, sorted.
fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if fs::symlink_metadata(&path)?.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn sums(root: &Path) -> Result<String> {
    let files: Vec<PathBuf> = walk(root)?
        .into_iter()
        .filter(|path| !path.is_symlink())
        .filter_map(|path| path.strip_prefix(root).map(Path::to_owned).ok())
        .collect();
    process::output_of(Command::new("md5sum").args(files).current_dir(root))
}

fn kilobytes(root: &Path) -> Result<u64> {
    let mut bytes = 0;
    for path in walk(root)? {
        bytes += fs::symlink_metadata(path)?.len();
    }
    Ok(bytes.div_ceil(1024))
}

fn lint(packages: &[PathBuf]) -> Result<()> {
    packages::require(&[packages::LINTIAN])?;
    let output = Command::new("lintian")
        .args(["--fail-on", "error", "--allow-root"])
        .args(packages)
        .output()
        .context("cannot start lintian")?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    ensure!(
        output.status.success(),
        "lintian found an error ({}) {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    println!("lintian: no error");
    Ok(())
}
