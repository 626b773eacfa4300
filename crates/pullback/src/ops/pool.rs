//! Maximum, average and adaptive average pooling with their backward ops.
//!
//! An input may lack its batch axis; indices count positions inside one plane of
//! the input, ties going to the first, and a NaN wins over every number.
