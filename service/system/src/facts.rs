//! What is known of a process when it is about to be moved.
