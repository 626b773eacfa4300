//! A description of an op for people: its kernels and rules, each with its dispatch key, the
//! function or word of the item that defines it, and its line.
//!
//! ```
//! let erf = pullback::ops::registry().find(|op| op.name == "erf").unwrap();
//! let all = erf.registrations();
//! let cpu = all.iter().find(|rule| rule.key == "CPU").unwrap();
//! assert_eq!(cpu.text, "cpu = erf");
//! assert!(cpu.to_string().starts_with("CPU: cpu = erf at crates/pullback/src/ops/"), "{cpu}");
//! assert!(erf.is_registered_for("Autograd") && !erf.is_registered_for("CompositeImplicitAutograd"));
//! ```

use super::{Backend, Form, OpDef, Traits};
use crate::tensor::{Flag, Key};
use crate::{Device, Tensor};
use std::fmt::{self, Write as _};

/// The position of an item in the source code, and its kernels and rules.
pub struct OpSource {
    /// The file.
    pub file: &'static str,
    /// The line of the item's name.
    pub line: u32,
    /// The functions and words that are kernels or rules.
    pub parts: &'static [Part],
}

/// A function or word of an item.
pub struct Part {
    /// The name: `vjp_self`, `batch`.
    pub name: &'static str,
    /// The text, for functions without types: `fn vjp_self(grad, other)`, `batch = mm(self, mat2)`.
    pub text: &'static str,
    /// The line.
    pub line: u32,
}

/// A kernel or rule of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name of the dispatch key, as in PyTorch.
    pub key: &'static str,
    /// The function or word of the item.
    pub text: &'static str,
    /// The file where it stands.
    pub file: &'static str,
    /// The line.
    pub line: u32,
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at {}:{}", self.key, self.text, self.file, self.line)
    }
}

/// The keys that something can be registered for, the outermost layer first.
const KEYS: [&str; 9] = [
    "AutocastCPU",
    "Autograd",
    "ADInplaceOrView",
    "CompositeImplicitAutograd",
    "FuncTorchBatched",
    "CPU",
    "Meta",
    "SparseCPU",
    "SparseCsrCPU",
];

impl Part {
    /// The names of the keys that the part is a kernel or rule for.
    fn keys(&self) -> &'static [&'static str] {
        match self.name {
            "cpu" | "cpu_" | "copy_of" => &["CPU"],
            "composite" => &["CompositeImplicitAutograd"],
            "meta" => &["Meta"],
            "sparse" => &["SparseCPU", "SparseCsrCPU"],
            "sparse_coo" => &["SparseCPU"],
            "sparse_csr" => &["SparseCsrCPU"],
            "batch" => &["FuncTorchBatched"],
            "autocast" => &["AutocastCPU"],
            "view" | "multi_view" => &["ADInplaceOrView"], // tidy: not an op
            name if name == "jvp" || name.starts_with("vjp") => &["Autograd"],
            _ => &[],
        }
    }
}

impl OpDef {
    /// The forms in which the op can be called. (The form with `out=` has no tensors here.)
    pub fn forms(&self) -> impl Iterator<Item = Form<'static>> {
        let is_inplace = self.is(Traits::INPLACE) && !self.is(Traits::INPLACE_ONLY);
        let forms = [
            Some(Form::Functional),
            is_inplace.then_some(Form::Inplace),
            self.is(Traits::OUT).then_some(Form::Out(&[])),
        ];
        forms.into_iter().flatten()
    }
    /// A text for people about one form of the op: signature, kernels and rules, and where they stand.
    pub fn dump(&self, form: Form<'_>) -> String {
        let OpSource { file, line, .. } = self.source;
        let name = form.qualified(self);
        let mut text = format!(
            "name: {name}\nschema: aten::{}\ndebug: defined at {file}:{line}\n",
            self.schema_text
        );
        for registration in self.registrations() {
            let _ = writeln!(text, "{registration}");
        }
        text
    }
    /// The op's kernels and rules, those of the outermost layer first.
    pub fn registrations(&self) -> Vec<Registration> {
        let of_key = |key: &'static str| {
            let parts = self.source.parts.iter().filter(move |part| part.keys().contains(&key));
            parts.map(move |part| Registration {
                key,
                text: part.text,
                file: self.source.file,
                line: part.line,
            })
        };
        KEYS.into_iter().flat_map(of_key).collect()
    }
    /// Whether the op has a kernel or rule of its own for the dispatch key of that name.
    pub fn is_registered_for(&self, key: &str) -> bool {
        let backend = Backend::ALL.into_iter().find(|backend| backend.name() == key);
        backend.is_some_and(|backend| self.has_kernel(backend))
            || self.source.parts.iter().any(|part| part.keys().contains(&key))
    }
    /// Whether there can be kernels or rules for a dispatch key of that name.
    pub fn is_key(key: &str) -> bool {
        KEYS.contains(&key)
            || Backend::ALL.iter().any(|backend| backend.name() == key)
            || Key::ALL.iter().any(|known| known.name() == key)
    }
}

/// The names of the dispatch keys of a tensor, the innermost first: its backend, and the layers that its ops pass.
pub fn named_keys(tensor: &Tensor) -> Vec<&'static str> {
    let keys = tensor.keys();
    let mut names = vec![Backend::of(tensor).name()];
    let inner = [Key::Python, Key::Conjugate, Key::Negative];
    names.extend(inner.into_iter().filter(|&key| keys.has(key)).map(Key::name));
    let [autograd, autocast] = match tensor.device() {
        Device::Cpu | Device::Absent(_) => ["AutogradCPU", "AutocastCPU"],
        Device::Meta => ["AutogradMeta", "AutocastMeta"],
        Device::Cuda(_) => ["AutogradCUDA", "AutocastCUDA"],
    };
    if !tensor.has_flag(Flag::INFERENCE) {
        names.extend([Key::ADInplaceOrView.name(), autograd]);
    }
    names.push(autocast);
    names.extend(keys.has(Key::FuncTorchBatched).then_some(Key::FuncTorchBatched.name()));
    names
}
