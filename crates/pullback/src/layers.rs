//! The layers that the call of an op can have to pass on its way to a kernel, the outermost first.
//!
//! Each is a module with one entry. Which layers a call passes say its keys ([`crate::tensor::Key`]); a layer does its part and
//! calls on ([`crate::dispatch::Call::next`]). A call without any key goes from `autograd::call` straight to the dense CPU
//! kernel. Behind the last layer is that kernel too.

use crate::autograd::{self, batch, cast, forward, outside, torch_dispatch};
use crate::dispatch::{Layer, meta, resolve, simulated, sparse, trace};
use crate::tensor::{Key, KeySet, SPARSE, UNRESOLVED};

/// The keys of the layer that records.
const RECORDING: KeySet = KeySet::of(Key::Autograd).with(KeySet::of(Key::ADInplaceOrView));

/// The table, in the order in which calls pass it.
pub static LAYERS: [Layer; 12] = [
    Layer { keys: KeySet::of(Key::Trace), run: trace::layer },
    Layer { keys: KeySet::of(Key::Profiler), run: outside::layer },
    Layer { keys: KeySet::of(Key::Autocast), run: cast::layer },
    Layer { keys: KeySet::of(Key::ForwardAD), run: forward::layer },
    Layer { keys: RECORDING, run: autograd::layer },
    Layer { keys: KeySet::of(Key::FuncTorchBatched), run: batch::layer },
    Layer { keys: KeySet::of(Key::FuncTorchVmapMode), run: batch::random_layer },
    Layer { keys: KeySet::of(Key::Python), run: torch_dispatch::layer },
    Layer { keys: KeySet::of(Key::Meta), run: meta::layer },
    Layer { keys: KeySet::of(Key::CUDA), run: simulated::layer },
    Layer { keys: UNRESOLVED, run: resolve::layer },
    Layer { keys: SPARSE, run: sparse::layer },
];
