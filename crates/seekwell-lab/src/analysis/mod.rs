//! From results to what may be said of them: per cell and comparison the effect, its interval and
//! the verdict; flags; the overview of an experiment.
