//! The evidence about Seekwell itself.
//!
//! [`reproduce`] repeats published comparisons. [`validation`] compares the models with published
//! figures, and [`curves`] measures the performance curves of a device. [`demo`] shows well-known
//! behaviours of schedulers, and checks each claim with numbers. [`worlds`] compares the simulation
//! with the running kernel, [`referee`] compares single scheduling decisions with those of the
//! kernel, and [`fidelity`] compares them with recorded decisions. Experiments and their statistics
//! are in `seekwell-lab`. This crate prints nothing.

pub mod curves;
pub mod demo;
pub mod fidelity;
pub mod referee;
pub mod reproduce;
pub mod validation;
pub mod worlds;
