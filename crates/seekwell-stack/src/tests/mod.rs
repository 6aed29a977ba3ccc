//! Tests of the kernel model with a simple disk.

mod blocks;
mod disk;
mod effects;
mod facts;
mod flusher;
mod machine;
mod properties;
mod seam;
mod streams;
mod throttle;
