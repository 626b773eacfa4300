//! Fused optimiser steps and the list operations that gradient clipping uses.
//!
//! Each op updates whole lists of parameters in one call, below recording: no
//! history is kept, the versions of the written tensors advance. The Python
//! optimisers hold the state; nothing here remembers a step.
