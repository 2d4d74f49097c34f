//! The slices of the classes: started, and compared with what the kernel enforces.
