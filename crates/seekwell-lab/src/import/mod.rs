//! Results made elsewhere, read into [`crate::results::Results`]: nothing in a file is executed,
//! and nothing of it is believed without bounds.
