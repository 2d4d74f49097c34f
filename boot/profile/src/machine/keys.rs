//! The keys of the machine file.

/// The CPUs that are measured on.
pub const BENCH: &str = "cpus.bench";
/// All other CPUs.
pub const HOUSEKEEPING: &str = "cpus.housekeeping";
/// The CPU of single-core.
pub const SINGLE_CORE: &str = "cpus.single_core";
/// Housekeeping CPUs that multi-core takes offline.
pub const PARKED: &str = "cpus.parked";
/// What is online after the boot.
pub const EXPECTED_ONLINE: &str = "cpus.expected_online";
/// Which kernels are cloned.
pub const KERNEL_ENTRY_MATCH: &str = "boot.kernel_entry_match";
/// Units that are masked.
pub const MASKED: &str = "units.masked";
/// Units that disturb.
pub const NOISY: &str = "units.noisy";
/// The canary's divisor.
pub const DIVISOR: &str = "canary.divisor";

/// SMT of multi-core, as [`smt`] has it.
pub const MULTI_CORE_SMT: &str = "profiles.multi-core.smt";

/// All but those of the profiles.
const FIXED: [&str; 9] = [
    BENCH,
    HOUSEKEEPING,
    SINGLE_CORE,
    PARKED,
    EXPECTED_ONLINE,
    KERNEL_ENTRY_MATCH,
    MASKED,
    NOISY,
    DIVISOR,
];

/// `profiles.NAME.boost`.
pub fn boost(profile: crate::profile::Profile) -> String {
    format!("profiles.{profile}.boost")
}

/// `profiles.NAME.smt`.
pub fn smt(profile: crate::profile::Profile) -> String {
    format!("profiles.{profile}.smt")
}

/// The key that was meant by one that there is not: the same last part elsewhere, or the same letters
/// but for case, dashes and underscores.
pub fn meant(key: &str) -> Option<String> {
    let letters = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    };
    let last = |text: &str| letters(text.rsplit('.').next().unwrap_or(text));
    let switches = crate::profile::Profile::ALL
        .into_iter()
        .flat_map(|profile| [boost(profile), smt(profile)]);
    let all: Vec<String> = FIXED
        .into_iter()
        .map(str::to_owned)
        .chain(switches)
        .collect();
    all.iter()
        .find(|known| letters(known) == letters(key))
        .or_else(|| all.iter().find(|known| last(known) == last(key)))
        .cloned()
}
