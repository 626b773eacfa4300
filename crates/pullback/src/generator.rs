//! Random number generators: a shared handle to the kernels' Mersenne Twister, and the default one.

use crate::Result;
use crate::error::ensure;
use crate::tensor::watch;
use pullback_kernels::random::{DEFAULT_SEED, Generator as State};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// A source of random numbers; clones share it.
#[derive(Clone)]
pub struct Generator(Arc<GeneratorShared>);

struct GeneratorShared {
    state: Mutex<State>,
    /// The number of the thread that has the lock; 0 if none has.
    holder: AtomicU64,
}

/// The lock of a generator: no other thread draws from it as long as this lives.
pub struct GeneratorGuard<'a> {
    state: MutexGuard<'a, State>,
    holder: &'a AtomicU64,
}
impl Deref for GeneratorGuard<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}
impl DerefMut for GeneratorGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
impl Drop for GeneratorGuard<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Relaxed);
    }
}

static DEFAULT: LazyLock<Generator> = LazyLock::new(|| Generator::new(DEFAULT_SEED));

impl Generator {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Generator::of(State::new(seed))
    }
    fn of(state: State) -> Self {
        Generator(Arc::new(GeneratorShared { state: Mutex::new(state), holder: AtomicU64::new(0) }))
    }
    /// The generator itself, locked: numbers are drawn by one caller at a time.
    ///
    /// # Panics
    /// If this thread has it locked already, see [`Generator::try_lock`].
    pub fn lock(&self) -> GeneratorGuard<'_> {
        self.try_lock().unwrap_or_else(|error| panic!("{error}"))
    }
    /// As [`Generator::lock`], with an error instead of a panic.
    ///
    /// # Errors
    /// `RuntimeError` if this thread has it locked already: a signal's handler, or a check of
    /// [`crate::interrupt::watch`], runs in the middle of the draw that it interrupted.
    pub fn try_lock(&self) -> Result<GeneratorGuard<'_>> {
        let this = u64::from(crate::autograd::thread_number());
        ensure!(
            self.0.holder.load(Relaxed) != this,
            runtime,
            "a random number generator cannot be used while the same thread is in the middle of drawing from it (as it is for the handler of a signal that arrives then)"
        );
        let state = self.0.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.0.holder.store(this, Relaxed);
        Ok(GeneratorGuard { state, holder: &self.0.holder })
    }
    /// Restarts the generator with `seed`.
    pub fn set_seed(&self, seed: u64) {
        refuse_recording();
        self.lock().set_seed(seed);
    }
    /// The seed that was set last.
    pub fn initial_seed(&self) -> u64 {
        self.lock().seed()
    }
    /// The state in PyTorch's layout.
    pub fn state(&self) -> Vec<u8> {
        refuse_recording();
        self.lock().state()
    }
    /// Restores a state that [`Generator::state`] (or PyTorch) returned.
    ///
    /// # Errors
    /// `RuntimeError` if the size or the counters are impossible.
    pub fn set_state(&self, bytes: &[u8]) -> Result<()> {
        refuse_recording();
        Ok(self.lock().set_state(bytes)?)
    }
    /// Restarts the generator with a seed that no other run has; returns the seed.
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
        refuse_recording();
        Generator::of(self.lock().clone())
    }
    /// Whether two handles are to the same generator.
    pub fn is_same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Refuses to record this: a recording knows of numbers that ops draw, and of no other change of a
/// generator.
fn refuse_recording() {
    if watch::is_any() {
        watch::refuse(|| "the state of a random number generator is read or set".into());
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

/// Restarts the default generator with `seed`.
pub fn manual_seed(seed: u64) {
    DEFAULT.set_seed(seed);
}
