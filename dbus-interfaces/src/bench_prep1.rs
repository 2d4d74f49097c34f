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
use crate::bench_types::{CheckRow, KnobRow};

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

    /// The profiles that there are.
    #[zbus(property(emits_changed_signal = "const"))]
    fn profiles(&self) -> Vec<String> {
        ["single-core", "multi-core", "unlimited"]
            .map(str::to_owned)
            .into()
    }
}
