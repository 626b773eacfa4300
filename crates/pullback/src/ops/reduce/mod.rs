//! What joins elements along dimensions: sums, maxima and minima, scans, counts.

pub(in crate::ops) mod any_all;
pub(in crate::ops) mod covariance;
pub(in crate::ops) mod difference;
pub(in crate::ops) mod gradient;
pub(in crate::ops) mod hash;
pub mod histogram;
pub(in crate::ops) mod mean;
pub(in crate::ops) mod min_max;
pub(in crate::ops) mod quantile;
pub(in crate::ops) mod scan;
pub(in crate::ops) mod sum;
pub(in crate::ops) mod variance;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    sum::OPS,
    any_all::OPS,
    mean::OPS,
    min_max::OPS,
    variance::OPS,
    scan::OPS,
    covariance::OPS,
    difference::OPS,
    gradient::OPS,
    hash::OPS,
    histogram::OPS,
    quantile::OPS,
];
