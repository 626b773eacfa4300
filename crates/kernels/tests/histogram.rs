//! Histograms against a twin that asks every box about every point.

mod array;

use array::{Array, TestRng};
use pullback_kernels::histogram::{BinSearch, histogram};
use pullback_kernels::{C128, DType};

/// Edges that are evenly spaced, as exact numbers: quarters.
fn edges(dtype: DType, first: f64, bins: usize) -> Array {
    let mut all = Array::zeros(dtype, &[bins as i64 + 1]);
    for i in 0..=bins {
        all.put(i, C128::new(first + i as f64 / 4.0, 0.0));
    }
    all
}

/// The bin whose edges hold `x`; the last bin has its last edge too.
fn bin(edges: &Array, x: f64) -> Option<usize> {
    let bins = edges.numel() - 1;
    (0..bins).find(|&i| {
        x >= edges.at(i) && (x < edges.at(i + 1) || i + 1 == bins && x == edges.at(bins))
    })
}

fn twin(points: &Array, edges: &[Array], weights: Option<&Array>) -> Vec<f64> {
    let rank = edges.len();
    let mut sums = vec![0.0; edges.iter().map(|e| e.numel() - 1).product()];
    for point in 0..points.shape[0] as usize {
        let bin = (0..rank).try_fold(0, |at, d| {
            let own = bin(&edges[d], points.at(point * rank + d))?;
            Some(at * (edges[d].numel() - 1) + own)
        });
        if let Some(bin) = bin {
            sums[bin] += weights.map_or(1.0, |w| w.at(point));
        }
    }
    sums
}

#[test]
fn histogram_equals_its_twin_in_every_search() {
    let mut rng = TestRng(1);
    for round in 0..200 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let rank = round / 2 % 4;
        // Some are large enough to be counted in blocks.
        let count = if round % 50 == 0 { 70_000 } else { rng.below(60) as i64 };
        let mut points = rng.layout(dtype, &[count, rank as i64]);
        for i in 0..points.numel() {
            // Eighths meet edges; some lie outside.
            let x = match rng.below(40) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                _ => rng.below(20) as f64 / 8.0 - 1.0,
            };
            points.put(i, C128::new(x, 0.0));
        }
        let edges: Vec<Array> = (0..rank).map(|_| edges(dtype, -0.5, 1 + rng.below(7))).collect();
        let views: Vec<_> = edges.iter().map(Array::view).collect();
        let mut weights = rng.layout(dtype, &[count]);
        for i in 0..weights.numel() {
            weights.put(i, C128::new(rng.below(9) as f64 - 4.0, 0.0));
        }
        let weights = (round % 3 == 0).then_some(weights);
        let expected = twin(&points, &edges, weights.as_ref());
        // (Eighths and quarters divide without rounding.)
        for search in [BinSearch::Divide, BinSearch::DivideThenCorrect, BinSearch::Bisect] {
            let weights = weights.as_ref().map(Array::view);
            let got = histogram(&points.view(), &views, search, weights.as_ref()).unwrap();
            assert_eq!(got, expected, "round {round}, {search:?}");
        }
    }
}

#[test]
fn looking_at_edges_mends_what_dividing_gets_wrong() {
    // Edges as they are rounded: 0.1 * 3 is above 0.3, and dividing puts 0.3 into the bin of 0.3 all the same.
    let values: Vec<f64> = (0..=10).map(|i| f64::from(i) * 0.1).collect();
    let edges = Array::vector(&values);
    let points = Array::of(&[1, 1], &[0.3]);
    let count = |search| histogram(&points.view(), &[edges.view()], search, None).unwrap();
    assert_eq!(
        count(BinSearch::DivideThenCorrect),
        twin(&points, std::slice::from_ref(&edges), None)
    );
    assert_eq!(count(BinSearch::Bisect), count(BinSearch::DivideThenCorrect));
    assert_eq!(count(BinSearch::Bisect)[2], 1.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let points = Array::of(&[2, 1], &[0.5_f32, 1.0]);
    let edges = Array::vector(&[0.0_f32, 1.0]);
    let other = Array::vector(&[0.0_f64, 1.0]);
    let single = Array::vector(&[0.0_f32]);
    let whole = Array::of(&[2, 1], &[1_i64, 2]);
    let long = Array::vector(&[1.0_f32, 2.0, 3.0]);
    let search = BinSearch::Bisect;
    let error = |points: &Array, edges: &[&Array], weights: Option<&Array>| {
        let edges: Vec<_> = edges.iter().map(|e| e.view()).collect();
        let weights = weights.map(Array::view);
        histogram(&points.view(), &edges, search, weights.as_ref())
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(error(&points, &[], None).contains("edges for 1 dimensions but got 0"));
    assert!(error(&points, &[&other], None).contains("expected dtype Float but got Double"));
    assert!(error(&points, &[&single], None).contains("at least two edges"));
    assert!(error(&points, &[&edges], Some(&long)).contains("weights: expected shape [2]"));
    assert!(error(&whole, &[&edges], None).contains("not implemented for 'Long'"));
    assert!(error(&edges, &[&edges], None).contains("a matrix of points"));
}
