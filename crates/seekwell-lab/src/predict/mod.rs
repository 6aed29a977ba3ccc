//! Predicts by simulation which scheduler a real device should have, and scores the predictions
//! against measurements.

mod mount;
mod translation;

pub use translation::{Setting, Translation};
