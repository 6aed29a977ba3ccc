//! Carries an experiment out: in blocks, on all cores, until the stopping rule, the budget or a
//! signal ends it; hands every run that ended to a store, and goes on where a store left off.
