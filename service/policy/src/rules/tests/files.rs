//! Rule files: layers, mistakes, classes.

use crate::class::Class;
use crate::rules::{RuleSet, shipped_layers};
use crate::settings::{Layer, Settings};

fn layer(origin: &str, text: &str) -> Layer {
    Layer {
        origin: origin.to_owned(),
        text: text.to_owned(),
    }
}

fn rule(name: &str, program: &str) -> String {
    format!(
        "[[rule]]\nname = {name:?}\nprograms = [{program:?}]\nclass = \"heavy\"\nreason = \"r\"\n"
    )
}

#[test]
fn the_shipped_rules_are_valid() {
    let parsed = RuleSet::parse(&shipped_layers()).unwrap_or_else(|errors| panic!("\n{errors}"));
    assert_eq!(parsed.check(&Settings::default()), Ok(()));
    assert_eq!(RuleSet::shipped().len(), parsed.len());
    assert!(parsed.len() > 50);
}

#[test]
fn every_shipped_file_is_built_in() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/rules.d");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("config/rules.d")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name in UTF-8")
        })
        .collect();
    files.sort();
    let built_in: Vec<String> = shipped_layers()
        .iter()
        .map(|layer| layer.file_name().to_owned())
        .collect();
    assert_eq!(files, built_in);
}

#[test]
fn a_file_of_the_same_name_replaces_and_an_empty_one_takes_away() {
    let shipped = layer("rules.d/50-a.toml", &rule("a", "alpha"));
    let mine = layer("/home/u/rules.d/50-a.toml", &rule("mine", "beta"));
    let rules = RuleSet::parse(&[shipped.clone(), mine]).expect("valid");
    assert_eq!(rules.matches(&["alpha"]), None);
    let found = rules.matches(&["/usr/bin/beta", "x"]).expect("a match");
    assert_eq!(found.rule.to_string(), "/home/u/rules.d/50-a.toml:1 (mine)");
    assert_eq!(
        (found.class.as_str(), found.reason.as_str()),
        ("heavy", "r")
    );
    let none = RuleSet::parse(&[shipped, layer("/home/u/rules.d/50-a.toml", "# nothing\n")])
        .expect("valid");
    assert!(none.is_empty());
}

#[test]
fn files_count_in_the_order_of_their_names_wherever_they_are() {
    let shipped = layer("rules.d/50-a.toml", &rule("shipped", "alpha"));
    let before = layer("/home/u/10-b.toml", &rule("before", "alph*"));
    let rules = RuleSet::parse(&[shipped.clone(), before]).expect("valid");
    assert_eq!(
        rules.matches(&["alpha"]).expect("a match").rule.name,
        "before"
    );
    let after = layer("/home/u/90-b.toml", &rule("after", "alph*"));
    let rules = RuleSet::parse(&[shipped, after]).expect("valid");
    assert_eq!(
        rules.matches(&["alpha"]).expect("a match").rule.name,
        "shipped"
    );
    assert_eq!(
        rules.matches(&["alphabet"]).expect("a match").rule.name,
        "after"
    );
}

#[test]
fn every_mistake_is_told_with_file_line_and_key() {
    let text = "\
[[rule]]
name = \"a\"
program = [\"x\"]
class = \"Heavy\"
reason = 3

[[rule]]
name = \"b\"
programs = [\"x\", 4]
class = \"heavy\"
reason = \"r\"
bundled = \"yes\"
subcommands = [\"\"]

[[rules]]
";
    let errors = RuleSet::parse(&[layer("my.toml", text)]).expect_err("mistakes");
    insta::assert_snapshot!(errors.to_string(), @r#"
    my.toml:3: unknown key `program`, did you mean `programs`?
    my.toml:4: `class` must be lower-case letters, digits and `_`, at most 32 of them, not the string "Heavy"
    my.toml:5: `reason` must be why it is heavy, in a few words, not the number 3
    my.toml:9: `programs` must be a list of strings that are not empty, not the number 4
    my.toml:12: `bundled` must be true or false, not the string "yes"
    my.toml:13: `subcommands` must be a list of strings that are not empty, not a list
    my.toml:15: unknown key `rules`, did you mean `rule`?
    "#);
}

#[test]
fn what_is_missing_or_twice_is_told() {
    let errors =
        RuleSet::parse(&[layer("m.toml", "[[rule]]\nclass = \"heavy\"\n")]).expect_err("mistakes");
    insta::assert_snapshot!(errors.to_string(), @r"
    m.toml:1: the rule lacks `name`: a short name, which is shown when the rule matches
    m.toml:1: the rule lacks `reason`: why it is heavy, in a few words
    ");
    let twice = format!("{}{}", rule("a", "x"), rule("a", "y"));
    let errors = RuleSet::parse(&[layer("m.toml", &twice)]).expect_err("mistakes");
    assert_eq!(
        errors.to_string(),
        "m.toml:6: `name` must be unique in its file (see line 1), not \"a\" again"
    );
    let errors = RuleSet::parse(&[layer("m.toml", "[[rule]\n")]).expect_err("mistakes");
    assert!(errors.to_string().starts_with("m.toml:1: "), "{errors}");
}

#[test]
fn a_rule_for_a_class_that_is_not_there_is_told() {
    let text =
        rule("a", "x").replace("heavy", "ci") + &rule("b", "y").replace("heavy", "protected");
    let rules = RuleSet::parse(&[layer("m.toml", &text)]).expect("valid by itself");
    let errors = rules
        .check(&Settings::default())
        .expect_err("no such class");
    insta::assert_snapshot!(errors.to_string(), @r#"
    m.toml:1: `a.class` must be one of the classes browser, heavy, not "ci"
    m.toml:6: `b.class` must be one of the classes browser, heavy, not "protected"
    "#);
}

#[test]
fn options_with_values_and_bundles_are_read_as_getopt_does() {
    let text = rule("a", "tool")
        + "subcommands = [\"go\"]\nvalues = [\"-f\", \"--file\"]\nunless = [\"-n\"]\nbundled = true\n";
    let rules = RuleSet::parse(&[layer("m.toml", &text)]).expect("valid");
    for heavy in [
        &["go"][..],
        &["-f", "-n", "go"],
        &["--file=x", "go"],
        &["-fn", "go"],
        &["-v", "go", "--", "-n"],
    ] {
        assert!(
            rules.matches(&[&["tool"], heavy].concat()).is_some(),
            "{heavy:?}"
        );
    }
    for light in [
        &["-n", "go"][..],
        &["-vn", "go"],
        &["go", "-nf", "x"],
        &["-f", "go"],
        &["x", "go"],
        &[],
    ] {
        assert!(
            rules.matches(&[&["tool"], light].concat()).is_none(),
            "{light:?}"
        );
    }
}

#[test]
fn a_class_of_the_users_takes_rules_of_the_users() {
    let mine = layer(
        "/home/u/rules.d/60-inference.toml",
        "[[rule]]\nname = \"serve\"\nclass = \"inference\"\nreason = \"serves a model\"\nprograms = [\"my-serve\"]\n",
    );
    let rules = RuleSet::parse(&[mine]).expect("valid");
    let errors = rules
        .check(&Settings::default())
        .expect_err("no such class")
        .to_string();
    assert_eq!(
        errors,
        "/home/u/rules.d/60-inference.toml:1: `serve.class` must be one of the classes browser, heavy, not \"inference\""
    );
    let mut settings = Settings::default();
    settings
        .classes
        .push(Class::new("inference", "inference.slice"));
    assert_eq!(rules.check(&settings), Ok(()));
    assert_eq!(
        rules.matches(&["my-serve"]).expect("a match").class,
        "inference"
    );
}

#[test]
fn patterns_of_a_class_come_before_rules_and_look_through_wrappers() {
    let mut settings = Settings::default();
    let mut class = Class::new("ci", "ci.slice");
    class.patterns = vec!["cargo --workspace".into(), "chrom* --headless*".into()];
    class.patterns_origin = "guard.toml:7".into();
    settings.classes.push(class);
    let rules = RuleSet::shipped().with_classes(&settings);
    let class_of = |line: &str| {
        let argv: Vec<&str> = line.split(' ').collect();
        rules.matches(&argv).map(|found| found.class)
    };
    for (line, class) in [
        ("cargo build --workspace", Some("ci")),
        ("nice cargo test --workspace -q", Some("ci")),
        ("cargo build", Some("heavy")),
        ("/opt/chrome/chrome --headless=new --x", Some("ci")),
        ("chromium --headless", Some("ci")),
        ("chromium", None),
        ("vim chrome --headless", None),
    ] {
        assert_eq!(class_of(line).as_deref(), class, "{line}");
    }
    let found = rules.matches(&["chrome", "--headless"]).expect("a match");
    assert_eq!(found.rule.to_string(), "guard.toml:7 (classes.ci.patterns)");
    assert_eq!(
        found.reason,
        "`chrom* --headless*` is a pattern of class ci"
    );
}
