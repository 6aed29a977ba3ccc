//! The virtual clock.
//!
//! Puts schedulers, layers and device models together on simulated time: `cases` holds a scheduler
//! under the microscope.

pub mod cases;
pub mod compare;
