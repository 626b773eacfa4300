//! The table of an op's kernels: one for each backend, which is a device together with a layout.
//!
//! `#[op]` fills it from the functions and words of the item. A call that came past all layers takes the kernel of the
//! strided tensors in main memory, `cpu`, without a look at the table; the layer of sparse tensors takes those of its layouts.
//! An op without a kernel for a backend is refused in one place, [`missing`].

use super::{Arg, Call, Form, OpDef, Outputs, Traits};
use crate::tensor::{Cpu, Key, Layout};
use crate::{Error, Result, Tensor};
use pullback_kernels::Iter;

/// The kernels of an op.
pub struct Kernels {
    /// The kernel of strided tensors in main memory.
    pub cpu: Kernel,
    /// The kernel of tensors in the COO layout.
    pub sparse_coo: Option<SparseKernel>,
    /// The kernel of tensors in the CSR, CSC, BSR and BSC layouts.
    pub sparse_csr: Option<SparseKernel>,
    /// Of an op on the values of a sparse `self`, the function for calls that autograd records: it is made of ops that are recorded
    /// one by one, so that the gradient rules see values only.
    pub on_values: Option<OnValues>,
}

/// The kernel of strided tensors: the way in which an op is computed on them.
pub enum Kernel {
    /// No kernel: the op takes sparse layouts only.
    None,
    /// Element by element over an `Iter` that the dispatcher prepares from `meta`.
    Pointwise(fn(&mut Iter, &[Arg<'_>]) -> Result<()>),
    /// Writes into outputs that the dispatcher makes as `meta` says, or into targets of `out=` that look like these.
    Writing(fn(Cpu, &[Arg<'_>], &[&Tensor]) -> Result<()>),
    /// A function that makes its outputs itself, as the shapes of the results depend on elements.
    Function(fn(Cpu, &[Arg<'_>]) -> Result<Outputs>),
    /// Shows the first argument's memory in another way, and reads none: it has no [`Cpu`], and needs no memory at all.
    View(fn(&[Arg<'_>]) -> Result<Outputs>),
    /// Lets the first argument itself show its memory in another way (`t_`), and reads none.
    ViewInplace(fn(&[Arg<'_>]) -> Result<()>),
    /// Writes into the first argument; the functional form clones first.
    Inplace(fn(Cpu, &[Arg<'_>]) -> Result<()>),
    /// A function made of other ops, which has their derivatives.
    Composite(fn(&[Arg<'_>]) -> Result<Outputs>),
}

impl Kernel {
    /// Whether the kernel reads and writes no element of its tensors.
    pub fn is_view(&self) -> bool {
        matches!(self, Kernel::View(_) | Kernel::ViewInplace(_))
    }
}

/// A kernel for sparse tensors, which returns new results. A kernel that writes to the first
/// argument itself if the form requires that returns this argument; that of an op that only exists
/// in place always does.
pub type SparseKernel = fn(Cpu, &Call<'_>) -> Result<Outputs>;

/// A function that computes a call on the values of its sparse argument `self`, with their history.
pub type OnValues = fn(&Call<'_>) -> Result<Outputs>;

/// A device together with a layout, for which an op may have a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Strided tensors in main memory.
    Cpu,
    /// Strided tensors on a CUDA device. Devices are simulated: these are the CPU's kernels, on the same memory.
    Cuda,
    /// Tensors without memory: the op's `meta` says what its results look like, and views show them.
    Meta,
    /// Coordinate lists in main memory.
    SparseCpu,
    /// Compressed rows or columns in main memory.
    SparseCsrCpu,
}

impl Backend {
    /// All backends.
    pub const ALL: [Backend; 5] =
        [Backend::Cpu, Backend::Cuda, Backend::Meta, Backend::SparseCpu, Backend::SparseCsrCpu];

    /// The name of the backend, which is that of PyTorch's dispatch key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "CPU",
            Backend::Cuda => "CUDA",
            Backend::Meta => "Meta",
            Backend::SparseCpu => "SparseCPU",
            Backend::SparseCsrCpu => "SparseCsrCPU",
        }
    }
    /// The backend of a tensor.
    pub fn of(tensor: &Tensor) -> Backend {
        match tensor.layout() {
            Layout::Strided if tensor.keys().has(Key::CUDA) => Backend::Cuda,
            Layout::Strided if tensor.keys().has(Key::Meta) => Backend::Meta,
            Layout::Strided => Backend::Cpu,
            Layout::SparseCoo => Backend::SparseCpu,
            _ => Backend::SparseCsrCpu,
        }
    }
}

impl OpDef {
    /// Whether there is a kernel for a backend. (Composites run everywhere, by the kernels of what they are made of.)
    #[must_use]
    pub fn has_kernel(&self, backend: Backend) -> bool {
        match (&self.kernels.cpu, backend) {
            (Kernel::Composite(_), _) => false,
            (kernel, Backend::Cpu | Backend::Cuda) => !matches!(kernel, Kernel::None),
            (kernel, Backend::Meta) => kernel.is_view() || self.meta.is_some(),
            (_, sparse) => self.kernels.sparse(sparse).is_some(),
        }
    }
}

impl Kernels {
    /// The kernel for a sparse layout.
    #[must_use]
    pub fn sparse(&self, backend: Backend) -> Option<SparseKernel> {
        match backend {
            Backend::SparseCpu => self.sparse_coo,
            Backend::SparseCsrCpu => self.sparse_csr,
            Backend::Cpu | Backend::Cuda | Backend::Meta => None,
        }
    }
}

/// The error for an op without a kernel for a backend.
#[cold]
pub(crate) fn missing(def: &OpDef, form: Form<'_>, backend: Backend) -> Error {
    let name = form.qualified(def);
    let there = Backend::ALL.into_iter().filter(|&backend| def.has_kernel(backend));
    let there: Vec<&str> = there.map(Backend::name).collect(); // tidy: short
    let is_dynamic = def.is(Traits::DYNAMIC_OUTPUT_SHAPE) || def.is(Traits::DATA_DEPENDENT_OUTPUT);
    let hint = match backend {
        Backend::SparseCpu | Backend::SparseCsrCpu => {
            " Use it on the dense tensor that to_dense() gives."
        }
        Backend::Meta if is_dynamic => {
            " Its result depends on elements, which meta tensors do not have."
        }
        Backend::Cpu | Backend::Cuda | Backend::Meta => "",
    };
    Error::not_implemented(format!(
        "Could not run '{name}' with arguments from the '{}' backend: it has no kernel for it.{hint} '{name}' is only available for these backends: [{}].",
        backend.name(),
        there.join(", ")
    ))
}
