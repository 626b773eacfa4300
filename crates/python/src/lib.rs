//! The Python face of pullback.
