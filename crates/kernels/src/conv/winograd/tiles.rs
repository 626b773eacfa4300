//! The tiles of a convolution's outputs, cut into blocks, and the pixels that they read with the channels side by side.

use super::super::ConvElement;
use super::super::geometry::ConvGeometry;
use crate::elementwise::copy_tile;
use std::ops::Range;

/// Tiles that a block should have about: their transforms stay in the second-level cache for 64 channels, and the
/// transformed weights are read once for so many.
const TILES: usize = 84;

/// How tiles of two by two outputs are cut into blocks: rows of tiles of one image, or several whole images.
pub(super) struct TileBlocks {
    /// Rows of tiles of an image, and tiles of a row.
    down: usize,
    pub(super) across: usize,
    /// Rows of a block's images.
    rows: usize,
    images: usize,
    batch: usize,
}

/// The tiles of some rows of some images.
#[derive(Clone)]
pub(super) struct TileBlock {
    pub(super) images: Range<usize>,
    pub(super) rows: Range<usize>,
    across: usize,
}

/// One tile: its image within the block, its row and column.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) image: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl TileBlocks {
    pub(super) fn new(g: &ConvGeometry) -> TileBlocks {
        let (down, across) = (g.output[1].div_ceil(2), g.output[2].div_ceil(2));
        let rows = (TILES / across).clamp(1, down);
        // Blocks of even size, so that the last one is no sliver.
        let rows = down.div_ceil(down.div_ceil(rows));
        let images = if rows < down { 1 } else { (TILES / (rows * across)).clamp(1, g.batch) };
        let images = g.batch.div_ceil(g.batch.div_ceil(images));
        TileBlocks { down, across, rows, images, batch: g.batch }
    }
    pub(super) fn count(&self) -> usize {
        self.batch.div_ceil(self.images) * self.down.div_ceil(self.rows)
    }
    pub(super) fn get(&self, index: usize) -> TileBlock {
        let per_image = self.down.div_ceil(self.rows);
        let (image, row) = (index / per_image * self.images, index % per_image * self.rows);
        TileBlock {
            images: image..self.batch.min(image + self.images),
            rows: row..self.down.min(row + self.rows),
            across: self.across,
        }
    }
    /// The most tiles of a block.
    pub(super) fn largest(&self) -> usize {
        self.images * self.rows * self.across
    }
    /// The most rows of outputs of a block, of all its images.
    pub(super) fn output_rows(&self) -> usize {
        2 * self.images * self.rows
    }
    /// The most rows of the block's images, `height` high, that are read where each row of tiles begins two rows after the
    /// one before and reads `reach` rows.
    pub(super) fn read_rows(&self, height: usize, reach: usize) -> usize {
        self.images * (2 * self.rows + reach - 2).min(height)
    }
}

impl TileBlock {
    pub(super) fn count(&self) -> usize {
        self.images.len() * self.rows.len() * self.across
    }
    pub(super) fn tiles(&self) -> impl Iterator<Item = Tile> + use<> {
        let (images, rows, across) = (self.images.len(), self.rows.clone(), self.across);
        (0..images).flat_map(move |image| {
            rows.clone()
                .flat_map(move |row| (0..across).map(move |column| Tile { image, row, column }))
        })
    }
}

/// Images of which blocks of tiles read parts of some channels.
#[derive(Clone, Copy)]
pub(super) struct Images<'x, T> {
    pub(super) data: &'x [T],
    pub(super) groups: usize,
    /// The channels of a group.
    pub(super) all: usize,
    /// The first channel that is read, and how many are.
    pub(super) first: usize,
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    /// Zeros above and to the left of an image.
    pub(super) padding: [usize; 2],
    /// Rows that a tile reads.
    pub(super) reach: usize,
}

/// The rows of a block's images that its tiles read, a run of channels for each pixel.
pub(super) struct Pixels<'b, T> {
    runs: &'b mut [T],
    zeros: &'b [T],
    /// Elements from run to run.
    pitch: usize,
    rows: Range<usize>,
    size: [usize; 2],
    padding: [usize; 2],
}

impl<'b, T: ConvElement> Pixels<'b, T> {
    /// Copies what a block reads of a group's channels into `runs`, with zeros up to a whole register of channels.
    pub(super) fn load(
        (runs, zeros): (&'b mut [T], &'b [T]),
        images: Images<'_, T>,
        block: &TileBlock,
        (group, pitch): (usize, usize),
    ) -> Pixels<'b, T> {
        let Images { groups, all, channels, height, width, padding, reach, .. } = images;
        let top = (2 * block.rows.start).saturating_sub(padding[0]).min(height);
        let end = (2 * block.rows.end + reach - 2).saturating_sub(padding[0]).clamp(top, height);
        let (count, plane, size) = ((end - top) * width, height * width, size_of::<T>());
        assert!(zeros.len() >= pitch && pitch >= channels);
        if !channels.is_multiple_of(16) {
            runs.fill(T::default());
        }
        for (to, n) in runs.chunks_exact_mut((count * pitch).max(1)).zip(block.images.clone()) {
            let first = (n * groups + group) * all + images.first;
            let x = &images.data[first * plane..][..channels * plane];
            let strides = ((pitch * size) as isize, (plane * size) as isize);
            if count > 0 {
                let from = x[top * width..].as_ptr().cast();
                // SAFETY: each channel has `count` elements from there; there is a run of `pitch` for each.
                unsafe {
                    copy_tile::<T, false>(to.as_mut_ptr().cast(), from, strides, (channels, count));
                }
            }
        }
        Pixels { runs, zeros, pitch, rows: top..end, size: [height, width], padding }
    }

    /// The runs of the `N` by `N` pixels of a tile, row by row.
    #[inline(always)]
    pub(super) fn of_tile<const N: usize, const ALL: usize>(&self, tile: Tile) -> [*const T; ALL] {
        let Range { start, end } = self.rows;
        let image = tile.image * (end - start);
        let mut all = [self.zeros.as_ptr(); ALL];
        for i in 0..N {
            let y = (2 * tile.row + i).wrapping_sub(self.padding[0]);
            if y >= self.size[0] {
                continue;
            }
            let row = (image + y - start) * self.size[1];
            for j in 0..N {
                let x = (2 * tile.column + j).wrapping_sub(self.padding[1]);
                if x < self.size[1] {
                    all[i * N + j] = self.runs[(row + x) * self.pitch..].as_ptr();
                }
            }
        }
        all
    }
}
