//! Padding by a constant, by reflection, by the edge value and around the ends.
//!
//! Pads are given from the last axis backwards, two per axis. Everything but the
//! constant mode is composed of gathers and so is differentiable to any order.
