//! `org.workloadguard.BenchPrep1`: prepares a machine for benchmarks, on the system bus.

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use zbus::message::{Flags, Header};
use zbus::names::{MemberName, OwnedUniqueName};
use zvariant::OwnedValue;

use crate::bench_error::BenchError;
use crate::bench_types::{CheckRow, EntryRow, KnobRow};

/// Who calls what, as far as the message itself tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The member, for the table of what it takes to be allowed to.
    pub member: String,
    /// The caller's name on the bus; absent on a connection without a bus.
    pub sender: Option<OwnedUniqueName>,
    /// Whether the caller accepts that a person is asked meanwhile (ALLOW_INTERACTIVE_AUTHORIZATION).
    pub interactive: bool,
}

impl Call {
    fn of(header: &Header<'_>) -> Call {
        Call {
            member: header
                .member()
                .map(MemberName::to_string)
                .unwrap_or_default(),
            sender: header.sender().map(|name| name.to_owned().into()),
            interactive: header
                .primary()
                .flags()
                .contains(Flags::AllowInteractiveAuth),
        }
    }
}

/// What serves [`BenchPrep1`]. Methods answer when the change was read back; getters cannot fail.
pub trait BenchPrep1Backend: Send + Sync + 'static {
    /// Behind `Apply`.
    fn apply(
        &self,
        call: Call,
        profile: String,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<Vec<KnobRow>, BenchError>> + Send;
    /// Behind `Restore`.
    fn restore(&self, call: Call) -> impl Future<Output = Result<Vec<KnobRow>, BenchError>> + Send;
    /// Behind `Check`.
    fn check(
        &self,
        call: Call,
        expected: String,
    ) -> impl Future<Output = Result<(bool, Vec<CheckRow>), BenchError>> + Send;
    /// Behind `PreviewBootEntries`.
    fn preview_boot_entries(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<(String, String, Vec<String>), BenchError>> + Send;
    /// Behind `RegenerateBootEntries`.
    fn regenerate_boot_entries(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<(Vec<EntryRow>, Vec<String>), BenchError>> + Send;
    /// Behind `SetNextBoot`.
    fn set_next_boot(
        &self,
        call: Call,
        profile: String,
    ) -> impl Future<Output = Result<String, BenchError>> + Send;
    /// Behind `BootLoader`.
    fn boot_loader(&self) -> String;
    /// Behind `NextProfile`.
    fn next_profile(&self) -> String;
    /// Behind `BootedProfile`.
    fn booted_profile(&self) -> String;
    /// Behind `Applied`.
    fn applied(&self) -> String;
}

/// The object at [`crate::names::BENCH_PATH`].
pub struct BenchPrep1<B>(pub Arc<B>);

/// Brings the machine into the state of a boot profile, says whether it is in it, and puts it back.
#[zbus::interface(
    name = "org.workloadguard.BenchPrep1",
    proxy(
        default_service = "org.workloadguard.BenchPrep1",
        default_path = "/org/workloadguard/BenchPrep1",
        gen_blocking = false,
    )
)]
impl<B: BenchPrep1Backend> BenchPrep1<B> {
    /// Brings the machine into the state of a profile, as far as that can be done without a boot. What was there
    /// before is saved first, and Restore puts it back. polkit: org.workloadguard.bench.apply.
    ///
    /// @profile: `single-core`, `multi-core` or `unlimited`; empty for the profile of this boot.
    /// @options: `boost` (s): `on` or `off`; `smt` (s): `on` or `off`, for unlimited; `keep-housekeeping-cores` (b):
    /// park none, for multi-core. An unknown option is refused.
    /// @knobs: each setting: id, where it is, requested, effective and original value, verdict (`ok`,
    /// `unsupported`, `overridden`) and the reason for it. A value that is not there is empty. Settings that differ are an
    /// error, KnobFailed, which names them.
    ///
    /// Errors: NotAuthorized, WrongProfile, InvalidSettings, KnobFailed, CanaryFailed, Busy.
    #[zbus(out_args("knobs"))]
    async fn apply(
        &self,
        #[zbus(header)] header: Header<'_>,
        profile: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<Vec<KnobRow>, BenchError> {
        self.0.apply(Call::of(&header), profile, options).await
    }

    /// Puts back what Apply changed, from what was saved. Where nothing was, it does nothing.
    /// polkit: org.workloadguard.bench.restore.
    ///
    /// @knobs: as for Apply.
    ///
    /// Errors: NotAuthorized, KnobFailed, Busy.
    #[zbus(out_args("knobs"))]
    async fn restore(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<KnobRow>, BenchError> {
        self.0.restore(Call::of(&header)).await
    }

    /// Says whether the machine is in the state of a profile. It changes nothing, and anyone may ask.
    ///
    /// @expected: a profile; empty for that of this boot.
    /// @ok: whether it is.
    /// @checks: what was looked at: a stable name, `ok`, `note` or `differs`, and what was seen in words.
    ///
    /// Errors: WrongProfile, InvalidSettings.
    #[zbus(out_args("ok", "checks"))]
    async fn check(
        &self,
        #[zbus(header)] header: Header<'_>,
        expected: String,
    ) -> Result<(bool, Vec<CheckRow>), BenchError> {
        self.0.check(Call::of(&header), expected).await
    }

    /// Shows what RegenerateBootEntries would change. It writes nothing, and anyone may ask.
    ///
    /// @loader: whose files they are: `limine`, `systemd-boot` or `grub`.
    /// @diff: a unified diff without unchanged lines around a change, since the files are root's; empty when nothing
    /// would change.
    /// @notes: what a person should know, a sentence each.
    ///
    /// Errors: InvalidSettings, UnsupportedLoader, ConfigUnmatched, EntriesFailed.
    #[zbus(out_args("loader", "diff", "notes"))]
    async fn preview_boot_entries(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(String, String, Vec<String>), BenchError> {
        self.0.preview_boot_entries(Call::of(&header)).await
    }

    /// Brings the boot loader's entries of the profiles up to date: one for each kernel that the machine file names and
    /// each profile. Files that are as they should be are not touched; what is replaced is kept in
    /// /var/backups/bench-profile first. polkit: org.workloadguard.bench.regenerate-boot-entries.
    ///
    /// @changed: each file: its path, and `written` or `removed`.
    /// @notes: as for PreviewBootEntries, and where the replaced files are kept.
    ///
    /// Errors: NotAuthorized, InvalidSettings, UnsupportedLoader, ConfigUnmatched, EntriesFailed, Busy.
    #[zbus(out_args("changed", "notes"))]
    async fn regenerate_boot_entries(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(Vec<EntryRow>, Vec<String>), BenchError> {
        self.0.regenerate_boot_entries(Call::of(&header)).await
    }

    /// Has the boot loader start the entry of a profile at the next boot, and at that one alone. It restarts nothing.
    /// polkit: org.workloadguard.bench.set-next-boot.
    ///
    /// @profile: a profile; empty takes back what was set.
    /// @entry: the entry, as the boot loader names it; empty when it was taken back.
    ///
    /// Errors: NotAuthorized, WrongProfile, UnsupportedLoader, ConfigUnmatched, EntriesFailed, Busy.
    #[zbus(out_args("entry"))]
    async fn set_next_boot(
        &self,
        #[zbus(header)] header: Header<'_>,
        profile: String,
    ) -> Result<String, BenchError> {
        self.0.set_next_boot(Call::of(&header), profile).await
    }

    /// The service's version.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// The profile that this boot is in; empty on a normal boot.
    #[zbus(property(emits_changed_signal = "const"))]
    fn booted_profile(&self) -> String {
        self.0.booted_profile()
    }

    /// The profile that was applied last and not restored; empty when none is.
    #[zbus(property)]
    fn applied(&self) -> String {
        self.0.applied()
    }

    /// The boot loader whose entries are kept: `limine`, `systemd-boot` or `grub`; empty when none is known. As it was
    /// when the service started.
    #[zbus(property(emits_changed_signal = "const"))]
    fn boot_loader(&self) -> String {
        self.0.boot_loader()
    }

    /// The profile that the next boot alone is into, as SetNextBoot set it or the loader has it; empty for a normal
    /// boot, and where it cannot be told.
    #[zbus(property)]
    fn next_profile(&self) -> String {
        self.0.next_profile()
    }

    /// The profiles that there are.
    #[zbus(property(emits_changed_signal = "const"))]
    fn profiles(&self) -> Vec<String> {
        ["single-core", "multi-core", "unlimited"]
            .map(str::to_owned)
            .into()
    }
}
