//! The op of `examples/custom_op` as a library for Python: `torch.ops.load_library` defines `torch.ops.celestial.kepler`.

use pullback_custom_op::KEPLER;

pullback_extension::library!("celestial", [KEPLER]);
