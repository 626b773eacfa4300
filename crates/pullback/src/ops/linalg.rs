//! Decompositions and solvers over batches of matrices, with their derivatives.
//!
//! The derivatives of singular and eigen decompositions exist only for functions
//! that do not depend on the phases of the vectors; the rules check that where it
//! can be seen. Kernels work on row-major copies, one matrix after another.
