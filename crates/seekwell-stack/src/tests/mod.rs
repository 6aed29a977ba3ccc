//! Tests of the model, over a plain disk.

mod disk;
mod machine;
mod properties;
mod seam;
mod streams;
