//! Data: examples by number, batches of them, made ahead by threads, and a progress bar.

mod collate;
mod dataset;
mod loader;
mod progress;
mod sampler;
mod worker;

pub use collate::Collate;
pub use dataset::{Dataset, Mapped, Subset, TensorDataset, random_split};
pub use loader::{Batches, DataLoader, DataLoaderOptions};
pub use progress::Progress;
pub use sampler::{
    RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler,
};
