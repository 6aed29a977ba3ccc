//! Tests of the model, over a plain disk.

mod disk;
mod machine;
mod seam;
mod streams;
