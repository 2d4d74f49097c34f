use super::*;
use crate::machine::MachineFile;

fn machine() -> Machine {
    let text = include_str!("../../../../config/machine.toml");
    let mut machine = MachineFile::parse("machine.toml", text)
        .expect("it is correct")
        .machine;
    machine.masked_units = vec!["a.service".to_owned(), "b@c.timer".to_owned()];
    machine
}

const HEADLESS: &str =
    "systemd.unit=multi-user.target systemd.swap=0 systemd.mask=a.service systemd.mask=b@c.timer";

#[test]
fn each_profile_has_its_line() {
    let line = |profile| merged("root=UUID=1 rw quiet\n", &machine(), profile).expect("a line");
    let isolated = |flags| {
        format!(
            "nosmt isolcpus={flags},8-15 nohz_full=8-15 rcu_nocbs=8-15 rcu_nocb_poll irqaffinity=0-7 systemd.cpu_affinity=0-7"
        )
    };
    assert_eq!(
        line(Profile::SingleCore),
        format!(
            "root=UUID=1 rw quiet bench_profile=single-core {} {HEADLESS}",
            isolated("domain,managed_irq")
        )
    );
    assert_eq!(
        line(Profile::MultiCore),
        format!(
            "root=UUID=1 rw quiet bench_profile=multi-core {} {HEADLESS}",
            isolated("managed_irq")
        )
    );
    assert_eq!(
        line(Profile::Unlimited),
        format!("root=UUID=1 rw quiet bench_profile=unlimited {HEADLESS}")
    );
}

#[test]
fn a_line_of_a_bench_boot_gives_the_same() {
    let base = "root=UUID=1 systemd.unit=graphical.target systemd.mask=mine.service dyndbg=\"file a.c +p\" -- nosmt";
    for profile in Profile::ALL {
        let once = merged(base, &machine(), profile).expect("a line");
        assert!(
            once.contains(" dyndbg=\"file a.c +p\" bench_profile="),
            "{once}"
        );
        assert!(once.ends_with(" -- nosmt"), "{once}");
        assert!(once.contains("systemd.mask=mine.service"), "{once}");
        assert!(!once.contains("graphical"), "{once}");
        assert_eq!(booted(&once), Ok(Some(profile)));
        for other in Profile::ALL {
            let again = merged(&once, &machine(), other).expect("a line");
            let fresh = merged(
                "root=UUID=1 dyndbg=\"file a.c +p\" -- nosmt",
                &machine(),
                other,
            );
            assert_eq!(Ok(again), fresh);
        }
    }
}

#[test]
fn names_are_compared_as_the_kernel_does() {
    assert_eq!(
        stripped("a rcu-nocbs=1 nosmt=force \"isolcpus=1\" b"),
        ["a", "b"]
    );
    assert_eq!(
        booted("bench_profile=unlimited bench-profile=multi-core"),
        Ok(Some(Profile::MultiCore))
    );
    assert_eq!(booted("quiet -- bench_profile=unlimited"), Ok(None));
    assert!(booted("bench_profile=fast").is_err());
}

#[test]
fn what_no_entry_can_hold_is_refused() {
    let machine = machine();
    let line = |base: &str| merged(base, &machine, Profile::Unlimited);
    assert_eq!(line("a\nb"), Err(CommandLineError::Control('\n')));
    assert_eq!(line("a=\"b c"), Err(CommandLineError::OpenQuote));
    let rest = line("").expect("a line").len() + 1;
    assert!(line(&"x".repeat(LIMIT - 1 - rest)).is_ok());
    let error = line(&"x".repeat(LIMIT - rest)).expect_err("one byte too many");
    assert!(
        error
            .to_string()
            .contains("would have 2048 bytes, and the kernel keeps 2047"),
        "{error}"
    );
}

#[test]
fn differences_say_what_is_missing_and_what_should_not_be() {
    let machine = machine();
    let right = merged("quiet", &machine, Profile::MultiCore).expect("a line");
    assert_eq!(differences(&right, &machine, Profile::MultiCore), [""; 0]);
    let wrong = right.replace("isolcpus=", "isolcpus=domain,");
    assert_eq!(
        differences(&wrong, &machine, Profile::MultiCore),
        [
            "the kernel's command line lacks isolcpus=managed_irq,8-15",
            "the kernel's command line has isolcpus=domain,managed_irq,8-15, which multi-core rules out",
        ]
    );
}
