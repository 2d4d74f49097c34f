//! x
pub fn run() -> anyhow::Result<u8> {
    Ok(0)
}
