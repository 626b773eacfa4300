//! Dropout: elements, or whole channels, set to zero at random while training.
//!
//! One Bernoulli mask per call, drawn in the element order of the default generator's stream; the rest are
//! products. Not here: the draws themselves (`random`). Invariant: in evaluation, or with p = 0 where the
//! reference draws nothing, the stream does not move.
