//! Random number generators: a shared handle to the kernels' Mersenne Twister, and the default one.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// Stand-in.
pub struct State(u64);
impl State { fn new(seed: u64) -> Self { State(seed) } }

/// A source of random numbers; clones share it.
#[derive(Clone)]
pub struct Generator(Arc<Mutex<State>>);

static DEFAULT: LazyLock<Generator> = LazyLock::new(|| Generator::new(67_280_421_310_721));

impl Generator {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Generator(Arc::new(Mutex::new(State::new(seed))))
    }
    /// The generator itself, locked: numbers are drawn by one caller at a time.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
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
    *DEFAULT.lock() = State::new(seed);
}
