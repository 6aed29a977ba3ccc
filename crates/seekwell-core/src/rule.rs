//! Rules of a scheduler by name: what a reason points at, so that anyone can look it up.
//!
//! A table of rules says in which function of the kernel's source each decision is taken, and in
//! one sentence what is decided there. It leaves out the figures of a single decision: these are
//! the event's details.

/// A rule: how `explain` names it, where the kernel has it, what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name among the rules of its scheduler: small words joined by hyphens, `batch-continues`.
    pub id: &'static str,
    /// The function it lies in, as the kernel's source (or the patch, for a scheduler that never
    /// was in the kernel) calls it.
    pub kernel: &'static str,
    /// What it says, in one sentence.
    pub says: &'static str,
}

/// Makes a table of rules: a constant for each, of type `&'static Rule`, and `RULES`, all of them
/// in the order written. A reason that names a rule which is not in the table does not compile.
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
        /// All of them, in the order of the kernel's file.
        pub(crate) const RULES: &[&$crate::Rule] = &[$($name),+];
    };
}
