//! Random number generators: a shared handle to the kernels' Mersenne Twister, and the default one.

use crate::Result;
use pullback_kernels::random::{DEFAULT_SEED, Generator as State};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// A source of random numbers; clones share it.
#[derive(Clone)]
pub struct Generator(Arc<Mutex<State>>);

static DEFAULT: LazyLock<Generator> = LazyLock::new(|| Generator::new(DEFAULT_SEED));

impl Generator {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Generator(Arc::new(Mutex::new(State::new(seed))))
    }
    /// The generator itself, locked: numbers are drawn by one caller at a time.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    /// Starts the stream of `seed` anew.
    pub fn set_seed(&self, seed: u64) {
        self.lock().set_seed(seed);
    }
    /// The seed it was given last.
    pub fn initial_seed(&self) -> u64 {
        self.lock().seed()
    }
    /// The state in PyTorch's layout.
    pub fn state(&self) -> Vec<u8> {
        self.lock().state()
    }
    /// Takes over a state that [`Generator::state`] (or PyTorch) gave.
    ///
    /// # Errors
    /// `RuntimeError` if the size or the counters are impossible.
    pub fn set_state(&self, bytes: &[u8]) -> Result<()> {
        Ok(self.lock().set_state(bytes)?)
    }
    /// Starts a stream that no other run has, and returns its seed.
    pub fn reseed(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        // The hasher's keys are the system's random numbers.
        let mut hasher = RandomState::new().build_hasher();
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        hasher.write_u128(elapsed.map_or(0, |d| d.as_nanos()));
        let seed = hasher.finish();
        self.set_seed(seed);
        seed
    }
    /// Another generator in the same state.
    pub fn clone_state(&self) -> Generator {
        Generator(Arc::new(Mutex::new(self.lock().clone())))
    }
    /// Whether two handles mean the same generator.
    pub fn is_same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generator(cpu)")
    }
}

/// The generator that ops draw from when none is given.
pub fn default_generator() -> &'static Generator {
    &DEFAULT
}

/// Starts the default generator at `seed`.
pub fn manual_seed(seed: u64) {
    DEFAULT.set_seed(seed);
}
