//! Tests of the model over a simple disk.

mod blocks;
mod disk;
mod effects;
mod facts;
mod machine;
mod properties;
mod seam;
mod streams;
mod throttle;
