//! Dispatch keys: the layers that the call of an op can have to pass on its way to a kernel, in their order.
//!
//! A tensor carries its keys as one word ([`Tensor::keys`]), and so does a thread the keys that it includes in every call and
//! those that it excludes. A call joins these once ([`KeySet::joined`]): the keys of all its tensors and those that the thread
//! includes, less those that it excludes. Without any key a call goes straight to the dense CPU kernel; else
//! `crate::layers` lists the module that each key stands for. The names are those of PyTorch's dispatch keys. An order of our
//! own: batched tensors come below autograd, which sees each as one tensor, so that gradients need no batching rules.

use super::{Device, Geometry, Layout};
use crate::Tensor;
use crate::local::local;
use crate::tensor::Flag;
use std::fmt;
use std::ops::BitOr;
use std::sync::OnceLock;

/// Declares the keys: one line each, the outermost layer first. A key is a bit of the upper half of a tensor's word.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        /// A layer that a call can have to pass, the outermost first.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum Key { $($(#[$doc])* $name = 1 << $bit,)* }
        impl Key {
            /// All, the outermost first.
            pub const ALL: &'static [Key] = &[$(Key::$name),*];
            /// The name of the key, which is PyTorch's.
            pub const fn name(self) -> &'static str {
                match self { $(Key::$name => stringify!($name),)* }
            }
        }
    };
}
keys! {
    /// Every call is observed: its way through the layers is printed, as an environment variable
    /// requests, or the thread is recorded.
    Trace = 18;
    /// The thread is profiled: a range of the profiler is opened around the op.
    Profiler = 31;
    /// Autocast is on: arguments are converted to the dtypes that the op's policy names.
    Autocast = 30;
    /// A level of forward mode is open and an argument may have a tangent, which is pushed forward.
    ForwardAD = 29;
    /// Composites are decomposed; ops whose arguments require grad are recorded.
    Autograd = 28;
    /// Views are linked to their base, and writes counted. The same module as [`Key::Autograd`].
    ADInplaceOrView = 27;
    /// A level of `vmap` is open on the thread: random ops draw for each example.
    FuncTorchVmapMode = 26;
    /// An argument is batched: the op's batching rule computes all examples at once.
    FuncTorchBatched = 25;
    /// A dispatch mode is on, or the class of an argument has a `__torch_dispatch__`: these give the result.
    Python = 24;
    /// An argument is on the meta device: shapes and dtypes of the results are known, nothing is computed.
    Meta = 17;
    /// An argument is on a CUDA device. Devices are simulated: the CPU's kernels run on their memory.
    CUDA = 23;
    /// An argument has the conj bit: kernels get its conjugate in memory.
    Conjugate = 22;
    /// An argument has the neg bit: kernels get its negative in memory.
    Negative = 21;
    /// An argument is a sparse COO tensor: the op's kernel for sparse layouts runs.
    Sparse = 20;
    /// An argument is a sparse compressed tensor (CSR, CSC, BSR, BSC).
    SparseCsr = 19;
}

impl Key {
    /// The bit of a thread's word that excludes the key from every call.
    #[inline]
    pub(crate) const fn excluded(self) -> u64 {
        (self as u64) << 16
    }
    /// The bit of a thread's word that includes the key in every call.
    const fn included(self) -> u64 {
        (self as u64) << 32
    }
    /// Whether this thread includes the key in every call.
    #[inline(always)]
    pub(crate) fn is_included(self) -> bool {
        local().modes.get() & self.included() != 0
    }
    /// Includes the key in every call of this thread (or not).
    pub(crate) fn include(self, on: bool) {
        set(self.included(), on);
    }
    /// Whether this thread excludes the key from every call.
    #[inline(always)]
    pub(crate) fn is_excluded(self) -> bool {
        local().modes.get() & self.excluded() != 0
    }
    /// Excludes the key from every call of this thread (or not); returns the previous value.
    pub(crate) fn exclude(self, on: bool) -> bool {
        let previous = self.is_excluded();
        set(self.excluded(), on);
        previous
    }
}

/// Includes [`Key::Trace`] in this thread's calls (`dispatch::trace`) if the environment variable `PULLBACK_TRACE_DISPATCH` is
/// set and not `0`. The variable is read once.
pub(super) fn begin_tracing() {
    if is_traced() {
        Key::Trace.include(true);
    }
}

/// Whether that variable is set.
pub(crate) fn is_traced() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    let is_set = || std::env::var_os("PULLBACK_TRACE_DISPATCH").is_some_and(|value| value != "0");
    *IS_ON.get_or_init(is_set)
}

/// Sets a bit of this thread's word.
fn set(bit: u64, on: bool) {
    let word = &local().modes;
    word.set((word.get() & !bit) | if on { bit } else { 0 });
}

/// A set of keys.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySet(u32);

impl KeySet {
    /// No key: the call goes straight to the dense CPU kernel.
    pub const EMPTY: KeySet = KeySet(0);
    /// The bits that are keys, in a tensor's word and in a thread's.
    pub(crate) const MASK: u32 = 0xfffe_0000;

    /// The layers that a call with tensors of the keys in `word` has to pass: these keys and those that this thread includes,
    /// less those that it excludes.
    #[inline(always)]
    pub(crate) fn joined(word: u32) -> KeySet {
        let of_thread = (local().modes.get() >> 32) as u32;
        KeySet::of_word((word | of_thread) & !(of_thread << 16))
    }
    /// The keys in a word that may have other bits.
    #[inline(always)]
    pub(crate) const fn of_word(word: u32) -> KeySet {
        KeySet(word & Self::MASK)
    }
    /// These keys as bits of a word.
    #[inline(always)]
    pub(crate) const fn word(self) -> u32 {
        self.0
    }
    /// One key.
    #[inline(always)]
    pub const fn of(key: Key) -> KeySet {
        KeySet(key as u32)
    }
    /// Whether the set is empty.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The keys of both.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, other: KeySet) -> KeySet {
        KeySet(self.0 | other.0)
    }
    /// These keys but for `other`.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, other: KeySet) -> KeySet {
        KeySet(self.0 & !other.0)
    }
    /// Whether the sets have a key in common.
    #[inline(always)]
    pub const fn has_any(self, other: KeySet) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether the set has this key.
    #[inline(always)]
    pub const fn has(self, key: Key) -> bool {
        self.0 & key as u32 != 0
    }
    /// The keys of the set, the outermost first.
    pub fn iter(self) -> impl Iterator<Item = Key> {
        Key::ALL.iter().copied().filter(move |&key| self.has(key))
    }
}

impl BitOr<Key> for KeySet {
    type Output = KeySet;
    fn bitor(self, key: Key) -> KeySet {
        self.with(KeySet::of(key))
    }
}

impl fmt::Display for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Key::name).collect(); // tidy: short
        write!(f, "DispatchKeySet({})", names.join(", "))
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The keys below [`Key::ADInplaceOrView`]: with one of these, another layer than the dense CPU kernel computes the op.
pub(crate) const BACKENDS: KeySet =
    KeySet(KeySet::MASK & ((Key::ADInplaceOrView as u32) - 1) & !(Key::Trace as u32));
/// The keys of tensors whose elements are not what their memory holds.
pub(crate) const UNRESOLVED: KeySet = KeySet(Key::Conjugate as u32 | Key::Negative as u32);
/// The keys of tensors in sparse layouts.
pub(crate) const SPARSE: KeySet = KeySet(Key::Sparse as u32 | Key::SparseCsr as u32);

const _: () = {
    assert!(Flag::UNRESOLVED == UNRESOLVED.word() && Flag::SPARSE == SPARSE.word());
    assert!(Flag::FACTS & KeySet::MASK == 0, "a fact about a tensor is no key");
};

impl Geometry {
    /// The keys that follow from the device and the layout of the elements.
    #[inline(always)]
    pub(super) fn keys(&self) -> KeySet {
        if self.device == Device::Cpu && self.layout == Layout::Strided {
            return KeySet::EMPTY;
        }
        self.keys_elsewhere()
    }
    /// The keys that [`Geometry::set`](Tensor::set_geometry) brings up to date.
    pub(super) const KEYS: KeySet = SPARSE.with(KeySet::of(Key::CUDA)).with(KeySet::of(Key::Meta));

    #[cold]
    fn keys_elsewhere(&self) -> KeySet {
        let of_layout = match self.layout {
            Layout::Strided => KeySet::EMPTY,
            layout if layout.is_compressed() => KeySet::of(Key::SparseCsr),
            _ => KeySet::of(Key::Sparse),
        };
        of_layout.with(self.device.keys())
    }
}

impl Device {
    /// The keys of this geometry.
    #[inline(always)]
    pub(crate) fn keys(self) -> KeySet {
        match self {
            Device::Cpu | Device::Absent(_) => KeySet::EMPTY,
            Device::Cuda(_) => KeySet::of(Key::CUDA),
            Device::Meta => KeySet::of(Key::Meta),
        }
    }
}

impl Tensor {
    /// The layers that an op on this tensor has to pass, whatever the thread includes or excludes.
    #[inline(always)]
    pub fn keys(&self) -> KeySet {
        KeySet::of_word(self.flags())
    }
    /// Whether it lives elsewhere than in main memory.
    pub(crate) fn is_on_device(&self) -> bool {
        self.device() != Device::Cpu
    }
}
