//! Rules of a scheduler by name. Reasons refer to them, so that users can look them up.
//!
//! For each decision, a table of rules gives the function in the kernel's source and a sentence
//! about the decision. The figures of a single decision are in the event's details.

/// A rule: its name in `explain`, its function in the kernel, and its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name among the rules of its scheduler: lower-case words joined by hyphens,
    /// `batch-continues`.
    pub id: &'static str,
    /// Name of its function in the kernel's source (or in the patch, for a scheduler that was never
    /// in the kernel).
    pub kernel: &'static str,
    /// Its meaning in one sentence.
    pub says: &'static str,
}

/// Makes a table of rules: a constant of type `&'static Rule` for each, and `RULES`, all of them in
/// the order written. A reason that names a missing rule does not compile.
///
/// ```
/// seekwell_core::rules! {
///     SWEEP_CONTINUES: "sweep-continues", "deadline_dispatch_requests",
///         "The request behind the last one goes.";
/// }
/// assert_eq!(SWEEP_CONTINUES.id, "sweep-continues");
/// assert_eq!(RULES.len(), 1);
/// ```
#[macro_export]
macro_rules! rules {
    ($($name:ident: $id:literal, $kernel:literal, $says:literal;)+) => {
        $(
            #[doc = $says]
            pub(crate) const $name: &$crate::Rule = &$crate::Rule {
                id: $id,
                kernel: $kernel,
                says: $says,
            };
        )+
        /// All rules, in the order of the kernel's file.
        pub(crate) const RULES: &[&$crate::Rule] = &[$($name),+];
    };
}
