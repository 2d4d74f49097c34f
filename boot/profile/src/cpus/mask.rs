//! The kernel's mask notation (`bitmap_parse`, `%*pb`): 32-bit words in hexadecimal, the highest first,
//! between commas.

use super::{BadCpus, CpuSet, LIMIT};

const WORD_BITS: u32 = 32;

impl CpuSet {
    /// Reads a mask, however many words the kernel printed. Blanks around it are dropped.
    ///
    /// # Errors
    ///
    /// Names the word that is none.
    pub fn from_mask(text: &str) -> Result<Self, BadCpus> {
        let mut set = CpuSet::default();
        for (n, group) in text.trim().rsplit(',').enumerate() {
            let bad = || BadCpus::Group {
                group: group.to_owned(),
            };
            if group.is_empty() || group.len() > 8 || group.starts_with('+') {
                return Err(bad());
            }
            let word = u32::from_str_radix(group, 16).map_err(|_| bad())?;
            for bit in (0..WORD_BITS).filter(|bit| word & (1 << bit) != 0) {
                let cpu = n as u64 * u64::from(WORD_BITS) + u64::from(bit);
                match u32::try_from(cpu) {
                    Ok(cpu) if cpu < LIMIT => set.cpus.insert(cpu),
                    _ => return Err(BadCpus::TooHigh(cpu)),
                };
            }
        }
        Ok(set)
    }

    /// As the kernel takes it: no leading zero, as many words as the highest CPU needs, `0` for none.
    pub fn to_mask(&self) -> String {
        let highest = self.iter().next_back().unwrap_or(0) / WORD_BITS;
        let mut words = vec![0_u32; highest as usize + 1];
        for cpu in self.iter() {
            words[(cpu / WORD_BITS) as usize] |= 1 << (cpu % WORD_BITS);
        }
        let mut words = words.into_iter().rev();
        let mut mask = format!("{:x}", words.next().unwrap_or(0));
        for word in words {
            mask.push_str(&format!(",{word:08x}"));
        }
        mask
    }
}
