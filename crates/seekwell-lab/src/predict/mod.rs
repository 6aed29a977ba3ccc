//! Predicts by simulation which scheduler a real device should have, and scores the predictions
//! against measurements.
//!
//! [`Translation`] turns the settings of a real queue and machine into simulated ones.
//! [`simulation`] plans the runs, [`Forecast`] draws claims and probabilities from their analysis,
//! [`judge`] scores a claim by the interval of a measurement, and [`track`] keeps the scores.

mod forecast;
mod mount;
mod nearest;
mod odds;
mod outcome;
mod plan;
mod scores;
pub mod track;
mod translation;

pub use forecast::{Forecast, Prediction, Scored};
pub use nearest::{Nearest, nearest};
pub use odds::{Odds, PRIOR, PRIOR_LINES, odds};
pub use outcome::{Claim, Outcome, Ratio, SIZE_LIMIT, claim, judge, shown};
pub use plan::{
    BLOCKS, Plan, can_simulate, experiment_of, experiment_of_recording, offered, simulation,
};
pub use scores::{Bin, Score, Scores, scores};
pub use translation::{Setting, State, Translation};
