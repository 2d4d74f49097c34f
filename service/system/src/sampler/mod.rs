//! The periodic look at the watched processes and at our scopes.
