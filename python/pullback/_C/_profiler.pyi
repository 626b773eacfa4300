# Written by `cargo xtask gen` from the op registry; edits are lost.
