//! The rules of a scheduler. A reason contains the name of a rule, so that users can look it up.
//!
//! For each rule, a table contains the function in the kernel's source and a sentence that
//! describes the decision. The numbers of a single decision are in the details of its event.

/// A rule of a scheduler: its name in `explain`, its function in the kernel, and its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Name of the rule, unique in its scheduler. It consists of lower-case words with hyphens, for
    /// example `batch-continues`.
    pub id: &'static str,
    /// Name of the function in the kernel's source, or in the patch of a scheduler that was never
    /// in the kernel.
    pub kernel: &'static str,
    /// Meaning of the rule in one or two sentences.
    pub says: &'static str,
}

/// Makes a table of rules: for each rule a constant of type `&'static Rule`, and `RULES` with all
/// rules in the written order. Code that names a missing rule does not compile.
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
