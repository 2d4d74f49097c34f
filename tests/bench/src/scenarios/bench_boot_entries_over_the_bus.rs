//! The boot loader's entries over the bus: anyone may look and sees nothing that is root's, who changes them is asked
//! for that by name, and the next boot is set and taken back where the loader can.

use std::fs;

use anyhow::{Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::agent::Agent;
use crate::harness::call::{Caller, INTERFACE, Order, done, refused};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{bench, ended_with, said};
use crate::harness::tree;
use crate::harness::user::{self, UID};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-boot-entries-over-the-bus",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    boots: &[run],
};

const CFG: &str = "boot/grub/grub.cfg";
const ENV: &str = "boot/grub/grubenv";
/// What nobody but root may see.
const SECRET: &str = "password_pbkdf2 root grub.pbkdf2.sha512.10000.SECRET";

fn run() -> Verdict {
    tree::install()?;
    tree::write(CFG, &native())?;
    tree::write(ENV, &block())?;
    anyone_may_look_and_sees_nothing_of_roots()?;
    a_person_is_asked_for_just_that()?;
    the_next_boot_is_set_and_taken_back()?;
    the_command_line_says_what_was_done()?;
    limine_is_refused_by_name()
}

fn native() -> String {
    format!(
        "if [ \"${{next_entry}}\" ] ; then\n  set next_entry=\n  save_env next_entry\nfi\n\
         ### BEGIN /etc/grub.d/10_linux ###\n\
         menuentry 'linux-cachyos' --id x {{\n\tlinux /vmlinuz-6.12-linux-cachyos root=UUID=1\n}}\n\
         ### END /etc/grub.d/10_linux ###\n\
         ### BEGIN /etc/grub.d/40_custom ###\n{SECRET}\n### END /etc/grub.d/40_custom ###\n"
    )
}

fn block() -> String {
    format!("{:#<1024}", "# GRUB Environment Block\nsaved_entry=x\n")
}

fn cfg() -> Result<String> {
    Ok(fs::read_to_string(tree::path(CFG))?)
}

fn env() -> Result<String> {
    Ok(fs::read_to_string(tree::path(ENV))?)
}

fn property(name: &str) -> Result<String> {
    let path = "/org/workloadguard/BenchPrep1";
    command::ok(&["busctl", "get-property", INTERFACE, path, INTERFACE, name])
}

fn anyone_may_look_and_sees_nothing_of_roots() -> Result<()> {
    let text = done(UID, &Order::of(INTERFACE, "PreviewBootEntries"))?;
    ensure!(
        text.contains("bench_profile=multi-core") && !text.contains("SECRET"),
        "{text}"
    );
    let shown = user::run(&["/usr/bin/workload-guard", "bench", "boot-entries", "preview"])?;
    ended_with(&shown, 0, "the preview of a user")?;
    said(&shown, "+++ b/boot/grub/grub.cfg")?;
    ensure!(!shown.said().contains("SECRET"), "{}", shown.said());
    ensure!(cfg()? == native(), "a preview wrote");
    step("anyone may look, and sees what would change and nothing else");
    Ok(())
}

fn a_person_is_asked_for_just_that() -> Result<()> {
    for (order, asks) in [
        (
            Order::of(INTERFACE, "RegenerateBootEntries"),
            "org.workloadguard.bench.regenerate-boot-entries: Authentication is required to change the boot menu",
        ),
        (
            Order::next_boot("single-core"),
            "org.workloadguard.bench.set-next-boot: Authentication is required to have this machine start into",
        ),
    ] {
        let mut caller = Caller::new(UID, &order.interactive())?;
        let agent = Agent::of(UID, caller.pid(), true)?;
        caller.go()?;
        let answer = caller.answer()?;
        let asked = agent.asked();
        ensure!(
            answer.error.is_none() && asked.len() == 1 && asked[0].starts_with(asks),
            "asked {asked:?}, answered {answer:?}"
        );
    }
    let text = cfg()?;
    ensure!(
        text.starts_with(&native()) && text.matches("bench_profile=").count() == 3,
        "{text}"
    );
    let env = env()?;
    ensure!(
        env.len() == 1024 && env.contains("next_entry=bench-profiles>bench-6.12-linux-cachyos-single-core\n"),
        "{env}"
    );
    step("a person is asked for each of the two by its own name");
    Ok(())
}

fn the_next_boot_is_set_and_taken_back() -> Result<()> {
    ensure!(property("BootLoader")?.contains("\"grub\""));
    ensure!(property("NextProfile")?.contains("\"single-core\""));
    done(0, &Order::next_boot(""))?;
    ensure!(env()? == block(), "{}", env()?);
    ensure!(property("NextProfile")?.contains("\"\""));
    refused(
        0,
        &Order::next_boot("multi-core\nnext_entry=x"),
        "org.workloadguard.Error.WrongProfile",
    )?;
    // Where GRUB could not take it back, it is not told.
    tree::write("proc/self/mountinfo", "1 0 0:9 / / rw - btrfs /dev/sda rw\n")?;
    let unsupported = "org.workloadguard.Error.UnsupportedLoader";
    let text = refused(0, &Order::next_boot("multi-core"), unsupported)?;
    ensure!(text.contains("is on btrfs"), "{text}");
    ensure!(env()? == block());
    fs::remove_dir_all(tree::path("proc/self"))?;
    step("the next boot is set, told, and taken back");
    Ok(())
}

fn the_command_line_says_what_was_done() -> Result<()> {
    tree::write(CFG, &native())?;
    let done = bench(&["boot-entries", "regenerate"])?;
    ended_with(&done, 0, "regenerate")?;
    said(&done, "written /boot/grub/grub.cfg")?;
    said(&done, "kept in /var/backups/bench-profile/")?;
    let again = bench(&["boot-entries", "regenerate", "--json"])?;
    ended_with(&again, 0, "regenerate, again")?;
    said(&again, "\"changed\": []")?;
    tree::write(CFG, &native().replace("cachyos", "other"))?;
    let unmatched = bench(&["boot-entries", "regenerate"])?;
    ended_with(&unmatched, 1, "regenerate without a kernel that matches")?;
    said(&unmatched, "boot.kernel_entry_match")?;
    said(&unmatched, "linux-other")?;
    step("the command line says what was done, and what is in the way");
    Ok(())
}

fn limine_is_refused_by_name() -> Verdict {
    fs::remove_dir_all(tree::path("boot/grub"))?;
    tree::write(
        "boot/limine.conf",
        "/linux-cachyos\nprotocol: linux\npath: boot():/vmlinuz\n",
    )?;
    let rebooted = bench(&["reboot", "--once", "multi-core"])?;
    ended_with(&rebooted, 1, "a one-shot boot with Limine")?;
    said(&rebooted, "Choose the entry in its menu")?;
    let done = bench(&["boot-entries", "regenerate"])?;
    ended_with(&done, 0, "regenerate")?;
    said(&done, "written /boot/limine.conf")?;
    step("Limine gets its entries, and a one-shot boot is refused with the way out");
    Ok(())
}
