//! How tensors print: digits, columns, brackets and the notes behind them, as PyTorch prints.
//!
//! All elements of a tensor share one width and one of three styles (whole numbers, fixed point,
//! powers of ten), chosen from the finite non-zero values that will be shown. Large tensors are
//! summarised by their edges. Start at [`text`].

use super::promote::{default_dtype, usual_complex};
use super::{Flag, Layout, Sparse, watch};
use crate::{DType, Device, Dims, Element, Result, Scalar, Tensor, interrupt};
use pullback_kernels::memory;
use std::fmt;
use std::sync::RwLock;

/// The options of printing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// Number of elements above which only edges are shown.
    pub threshold: usize,
    /// Elements at each edge of a dimension.
    pub edgeitems: usize,
    /// Characters per line.
    pub linewidth: usize,
    /// Powers of ten: always, never, or where they help.
    pub sci_mode: Option<bool>,
}

impl PrintOptions {
    /// The initial options.
    pub const DEFAULT: PrintOptions =
        PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None };
    /// Two digits, two elements at each edge.
    pub const SHORT: PrintOptions = PrintOptions { precision: 2, edgeitems: 2, ..Self::DEFAULT };
    /// Every element of every tensor.
    pub const FULL: PrintOptions = PrintOptions { threshold: usize::MAX, ..Self::DEFAULT };
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// The options in force.
pub fn print_options() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sets the options for every later print.
pub fn set_print_options(options: PrintOptions) {
    *OPTIONS.write().unwrap_or_else(std::sync::PoisonError::into_inner) = options;
}

/// Whether the text shows the tensor's grad state, and the class name under which it prints.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// `tensor`, or a subclass's name.
    pub name: &'a str,
    /// The name of its `grad_fn`, if it has one.
    pub grad_fn: Option<&'a str>,
    /// Whether the tensor is a leaf that requires grad.
    pub requires_grad: bool,
    /// The text of its tangent, if it has one.
    pub tangent: Option<&'a str>,
    /// The text in place of the elements, if they are not shown.
    pub contents: Option<&'a str>,
}

/// Printing shows the elements of a recording, which a replay could not show again.
fn note_reading() {
    if watch::is_any() {
        watch::refuse(|| "elements of a tensor are read on the host, to be printed".into());
    }
}

/// The whole text, as in `tensor([1., 2.], requires_grad=True)`.
///
/// # Errors
/// Out of memory.
pub fn text(tensor: &Tensor, heading: Heading<'_>, options: &PrintOptions) -> Result<String> {
    note_reading();
    let prefix = format!("{}(", heading.name);
    let indent = prefix.chars().count();
    let mut notes = Vec::new();
    let dtype = tensor.dtype();
    let size = || format!("size={}", tuple(tensor.shape()));
    let name = || format!("dtype=torch.{}", dtype.name());
    if let Device::Cuda(_) = tensor.device() {
        notes.push(format!("device='{}'", tensor.device()));
    }
    let body = if let Some(contents) = heading.contents {
        if dtype != default_dtype() {
            notes.push(name());
        }
        contents.to_string()
    } else if let Some(parts) = tensor.sparse() {
        let (body, count) = sparse_body(tensor, &parts, indent, options)?;
        notes.extend([size(), format!("nnz={count}")]);
        if dtype != default_dtype() {
            notes.push(name());
        }
        notes.push(format!("layout=torch.{}", tensor.layout().name()));
        body
    } else if tensor.device() == Device::Meta {
        // There are no elements to show.
        notes.extend([format!("device='{}'", tensor.device()), size()]);
        if dtype != default_dtype() {
            notes.push(name());
        }
        "...".to_string()
    } else if tensor.numel() == 0 {
        if tensor.ndim() != 1 {
            notes.push(size());
        }
        if dtype != default_dtype() {
            notes.push(name());
        }
        "[]".to_string()
    } else {
        if options.edgeitems == 0 {
            notes.push(size());
        }
        let usual = [default_dtype(), usual_complex(), DType::I64, DType::Bool];
        if !usual.contains(&dtype) {
            notes.push(name());
        }
        body(tensor, indent, options)?
    };
    if let Some(name) = heading.grad_fn {
        notes.push(format!("grad_fn=<{name}>"));
    } else if heading.requires_grad {
        notes.push("requires_grad=True".to_string());
    }
    if let Some(tangent) = heading.tangent {
        notes.push(format!("tangent={tangent}"));
    }
    let is_new_line = tensor.layout() == Layout::SparseCoo && heading.contents.is_none();
    let mut whole = prefix;
    memory::push_str(&mut whole, &body)?;
    with_notes(whole, &notes, indent, options.linewidth, is_new_line)
}

/// The parts of a sparse tensor one below the other, and how many values there are.
fn sparse_body(
    tensor: &Tensor,
    parts: &Sparse,
    indent: usize,
    options: &PrintOptions,
) -> Result<(String, i64)> {
    let named: Vec<(&str, &Tensor)> = match parts {
        // tidy: not an op
        Sparse::Coo(coo) => vec![("indices", &coo.indices), ("values", &coo.values)],
        Sparse::Compressed(c) => {
            let by_rows = tensor.layout().compresses_rows() == Some(true);
            let (compressed, plain) = if by_rows {
                ("crow_indices", "col_indices") // tidy: not an op
            } else {
                ("ccol_indices", "row_indices") // tidy: not an op
            };
            // tidy: not an op
            vec![(compressed, &c.compressed), (plain, &c.plain), ("values", &c.values)]
        }
    };
    let mut text = String::new();
    for (name, part) in named {
        if !text.is_empty() {
            memory::push_str(&mut text, &format!(",\n{}", " ".repeat(indent)))?;
        }
        let prefix = format!("{name}=tensor(");
        memory::push_str(&mut text, &prefix)?;
        memory::push_str(&mut text, &body(part, indent + prefix.len(), options)?)?;
        if part.numel() == 0 {
            memory::push_str(&mut text, &format!(", size={}", tuple(part.shape())))?;
        }
        memory::push_str(&mut text, ")")?;
    }
    let count = match parts {
        Sparse::Coo(coo) => coo.values.shape()[0],
        Sparse::Compressed(c) => c.plain.shape().last().copied().unwrap_or(0),
    };
    Ok((text, count))
}

/// The elements in brackets.
///
/// # Errors
/// Out of memory.
pub fn body(tensor: &Tensor, indent: usize, options: &PrintOptions) -> Result<String> {
    note_reading();
    if tensor.numel() == 0 {
        return Ok("[]".to_string());
    }
    let summarize = tensor.numel() as usize > options.threshold;
    let printer = Printer::new(tensor, summarize, options)?;
    let mut text = String::new();
    printer.block(&mut text, &mut 0, 0, indent)?;
    Ok(text)
}

fn tuple(shape: &[i64]) -> String {
    let items: Vec<String> = shape.iter().map(i64::to_string).collect();
    if items.len() == 1 { format!("({},)", items[0]) } else { format!("({})", items.join(", ")) }
}

/// Appends the notes, on lines of their own where the last line would be too long.
fn with_notes(
    text: String,
    notes: &[String],
    indent: usize,
    linewidth: usize,
    mut is_new_line: bool,
) -> Result<String> {
    let last_line = text.rsplit('\n').next().map_or(0, |l| l.chars().count());
    // The closing bracket and the comma before the note need their space.
    let mut length = last_line + 2;
    let mut out = text;
    for note in notes {
        let size = note.chars().count();
        if is_new_line || length + size + 2 > linewidth {
            memory::push_str(&mut out, &format!(",\n{}{note}", " ".repeat(indent)))?;
            length = indent + size;
            is_new_line = false;
        } else {
            memory::push_str(&mut out, &format!(", {note}"))?;
            length += size + 2;
        }
    }
    memory::push_str(&mut out, ")")?;
    Ok(out)
}

/// One number column: style and width.
#[derive(Debug)]
struct NumberColumn {
    whole: bool,
    powers: bool,
    width: usize,
    precision: usize,
}

impl NumberColumn {
    fn of_words(words: impl Iterator<Item = usize>) -> NumberColumn {
        let width = words.max().unwrap_or(1).max(1);
        NumberColumn { whole: true, powers: false, width, precision: 0 }
    }

    fn of_floats(
        values: impl Iterator<Item = f64> + Clone,
        options: &PrintOptions,
    ) -> NumberColumn {
        let precision = options.precision;
        let mut column = NumberColumn { whole: true, powers: false, width: 1, precision };
        let mut finite = values.filter(|v| v.is_finite() && *v != 0.0);
        let all = finite.clone();
        if finite.next().is_none() {
            return column;
        }
        let largest = all.clone().fold(0.0_f64, |m, v| m.max(v.abs()));
        let smallest = all.clone().fold(f64::INFINITY, |m, v| m.min(v.abs()));
        column.whole = all.clone().all(|v| v.ceil() == v);
        let helps = largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4;
        column.powers = options.sci_mode.unwrap_or(helps);
        let longest = |f: &dyn Fn(f64) -> String| {
            let length = |(at, v): (usize, f64)| {
                interrupt::check_every::<10>(at);
                f(v).len()
            };
            all.clone().enumerate().map(length).max().unwrap_or(1)
        };
        column.width = if column.powers {
            longest(&|v| power(v, precision))
        } else if column.whole {
            longest(&|v| fixed(v, 0)) + 1
        } else {
            longest(&|v| fixed(v, precision))
        };
        column
    }

    fn float(&self, value: f64) -> String {
        let text = if self.powers {
            power(value, self.precision)
        } else if self.whole {
            let mut text = fixed(value, 0);
            if value.is_finite() {
                text.push('.');
            }
            text
        } else {
            fixed(value, self.precision)
        };
        self.pad(text)
    }

    fn pad(&self, text: String) -> String {
        format!("{text:>width$}", width = self.width)
    }
}

fn word(value: Scalar) -> String {
    match value {
        Scalar::Bool(b) => if b { "True" } else { "False" }.to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::UInt(u) => u.to_string(),
        Scalar::Float(f) => fixed(f, 0),
        Scalar::Complex(re, _) => fixed(re, 0),
    }
}

fn fixed(value: f64, precision: usize) -> String {
    if value.is_nan() { "nan".to_string() } else { format!("{value:.precision$}") }
}

/// `1.0000e+10`: at least two digits in the exponent, with its sign.
fn power(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return fixed(value, precision);
    }
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The elements to show, in order, with the shape they came from.
struct Printer {
    shape: Dims,
    summarize: bool,
    edge: i64,
    linewidth: usize,
    values: Vec<Scalar>,
    style: Style,
}

/// How elements are written.
enum Style {
    Words(NumberColumn),
    /// Whole numbers of which half do not fit the number type.
    Unsigned(NumberColumn),
    Floats(NumberColumn),
    Complex(NumberColumn, NumberColumn),
}

/// The real and the imaginary part.
fn parts(value: Scalar) -> (f64, f64) {
    match value {
        Scalar::Complex(re, im) => (re, im),
        other => (other.to_f64(), 0.0),
    }
}

/// A whole number without a sign.
fn unsigned(value: Scalar) -> String {
    (value.to_i64() as u64).to_string()
}

impl Printer {
    fn new(tensor: &Tensor, summarize: bool, options: &PrintOptions) -> Result<Printer> {
        let edge = options.edgeitems as i64;
        let mut values = Vec::new();
        ShownElements { summarize, edge }.collect(tensor, 0, 0, &mut values)?;
        let dtype = tensor.dtype();
        let all = values.iter().copied();
        let style = if dtype.is_complex() {
            let real = NumberColumn::of_floats(all.clone().map(|v| parts(v).0), options);
            Style::Complex(real, NumberColumn::of_floats(all.map(|v| parts(v).1), options))
        } else if dtype.is_floating_point() {
            Style::Floats(NumberColumn::of_floats(all.map(Scalar::to_f64), options))
        } else if dtype == DType::U64 {
            Style::Unsigned(NumberColumn::of_words(all.map(|v| unsigned(v).len())))
        } else {
            Style::Words(NumberColumn::of_words(all.map(|v| word(v).len())))
        };
        let (shape, linewidth) = (Dims::from_slice(tensor.shape()), options.linewidth);
        Ok(Printer { shape, summarize, edge, linewidth, values, style })
    }

    fn element(&self, at: usize) -> String {
        let value = self.values[at];
        match &self.style {
            Style::Words(column) => column.pad(word(value)),
            Style::Unsigned(column) => column.pad(unsigned(value)),
            Style::Floats(column) => column.float(value.to_f64()),
            Style::Complex(real, imag) => {
                let (re, im) = parts(value);
                let real = real.float(re);
                let imag = format!("{}j", imag.float(im)).trim_start().to_string();
                let sign = if imag.starts_with(['+', '-']) { "" } else { "+" };
                format!("{real}{sign}{imag}")
            }
        }
    }

    fn element_width(&self) -> usize {
        match &self.style {
            Style::Words(column) | Style::Unsigned(column) | Style::Floats(column) => {
                column.width + 2
            }
            Style::Complex(real, imag) => real.width + imag.width + 3,
        }
    }

    /// Writes dimension `dim` from element `at` on.
    fn block(&self, text: &mut String, at: &mut usize, dim: usize, indent: usize) -> Result<()> {
        if dim == self.shape.len() {
            *at += 1;
            interrupt::check_every::<10>(*at);
            return Ok(memory::push_str(text, &self.element(*at - 1))?);
        }
        let size = self.shape[dim];
        let cut = self.summarize && size > 2 * self.edge;
        let count = if cut { 2 * self.edge } else { size };
        let is_row = dim + 1 == self.shape.len();
        // What stands between lines, and between the elements of one.
        let lines = "\n".repeat(self.shape.len() - dim - usize::from(!is_row));
        let apart = format!(",{lines}{}", " ".repeat(indent + 1));
        let room = self.linewidth.saturating_sub(indent);
        let per_line = if is_row { (room / self.element_width()).max(1) } else { 1 };
        let mut parts = 0;
        let mut begin = |text: &mut String| -> Result<()> {
            let between = if parts % per_line == 0 { &apart[..] } else { ", " };
            parts += 1;
            if parts > 1 {
                memory::push_str(text, between)?;
            }
            Ok(())
        };
        memory::push_str(text, "[")?;
        for index in 0..count {
            if cut && index == self.edge {
                begin(text)?;
                memory::push_str(text, if is_row { " ..." } else { "..." })?;
            }
            begin(text)?;
            self.block(text, at, dim + 1, indent + 1)?;
        }
        if cut && self.edge == 0 {
            begin(text)?;
            memory::push_str(text, "...")?;
        }
        Ok(memory::push_str(text, "]")?)
    }
}

/// Walks the elements that will be shown.
struct ShownElements {
    summarize: bool,
    edge: i64,
}

impl ShownElements {
    fn collect(
        &self,
        tensor: &Tensor,
        dim: usize,
        offset: i64,
        values: &mut Vec<Scalar>,
    ) -> Result<()> {
        if dim == tensor.ndim() {
            return Ok(memory::push(values, tensor.element_at(offset))?);
        }
        if !self.summarize && dim + 1 == tensor.ndim() {
            return tensor.push_row(offset, values);
        }
        let (size, stride) = (tensor.shape()[dim], tensor.strides()[dim]);
        let is_cut = self.summarize && size > 2 * self.edge;
        let hidden = if is_cut { self.edge..size - self.edge } else { size..size };
        for index in (0..hidden.start).chain(hidden.end..size) {
            interrupt::check_every::<10>(index as usize);
            self.collect(tensor, dim + 1, offset + index * stride, values)?;
        }
        Ok(())
    }
}

/// The value that a tensor with these sign bits has for a stored value.
#[inline(always)]
fn shown<T: Element>(stored: T, bits: u32) -> Scalar {
    let value = Scalar::of(stored);
    if bits == 0 {
        return value;
    }
    let value = if bits & Flag::CONJ != 0 { value.conj() } else { value };
    let value = if bits & Flag::NEG != 0 { -value } else { value };
    // (In the arithmetic of the dtype: the negative of the least integer is itself.)
    Scalar::of(value.to::<T>())
}

impl Tensor {
    /// The element this many elements behind the first one; the caller stays inside the shape.
    pub(crate) fn element_at(&self, offset: i64) -> Scalar {
        let (ptr, bits) = (self.data_ptr(), self.sign_bits());
        pullback_kernels::for_dtype!(self.dtype(), stored, T => {
            // SAFETY: offsets made of indices inside the shape and the strides stay inside the storage.
            let value = unsafe { ptr.cast::<T>().offset(offset as isize).read() };
            shown(value, bits)
        }, else {
            // Two numbers of four bits: what they are together is the byte's number.
            // SAFETY: as above; an element is one byte.
            Scalar::Int(i64::from(unsafe { ptr.offset(offset as isize).read() }))
        })
    }

    /// The elements along the last dimension, the first of them this many elements behind the tensor's.
    fn push_row(&self, offset: i64, values: &mut Vec<Scalar>) -> Result<()> {
        let (Some(&size), Some(&stride)) = (self.shape().last(), self.strides().last()) else {
            return Ok(());
        };
        let (ptr, bits) = (self.data_ptr(), self.sign_bits());
        pullback_kernels::for_dtype!(self.dtype(), stored, T => {
            let element = |index: i64| {
                let at = (offset + index * stride) as isize;
                // SAFETY: as above.
                let value = unsafe { ptr.cast::<T>().offset(at).read() };
                shown(value, bits)
            };
            memory::reserve(values, size as usize)?;
            for part in interrupt::chunks(size as usize) {
                memory::extend(values, part.map(|index| element(index as i64)))?;
            }
            Ok(())
        }, else {
            let all = (0..size).map(|index| self.element_at(offset + index * stride));
            Ok(memory::extend(values, all)?)
        })
    }

    /// All elements in row-major order.
    ///
    /// # Errors
    /// Out of memory.
    pub fn elements(&self) -> Result<Vec<Scalar>> {
        let mut values = memory::with_capacity(self.numel().max(0) as usize)?;
        ShownElements { summarize: false, edge: 0 }.collect(self, 0, 0, &mut values)?;
        Ok(values)
    }
}

/// The text of a tensor of no particular class, with its grad state and its tangent.
///
/// # Errors
/// Out of memory.
pub fn plain_text(tensor: &Tensor, options: &PrintOptions) -> Result<String> {
    note_reading();
    if let Some(text) = batched_text(tensor, options) {
        return text;
    }
    let node = match tensor.grad_fn() {
        Ok(node) => node.map(|n| n.name()),
        Err(_) => Some("Invalid".to_string()),
    };
    let tangent = tensor.tangent()?.map(|t| plain_text(&t, options)).transpose()?;
    let heading = Heading {
        name: "tensor",
        // Nodes of the engine's own print without the namespace they are in.
        grad_fn: node.as_deref().map(|n| n.rsplit("::").next().unwrap_or(n)),
        requires_grad: tensor.requires_grad(),
        tangent: tangent.as_deref(),
        contents: None,
    };
    text(tensor, heading, options)
}

/// The text of a tensor that `vmap` has batched: all its examples.
pub fn batched_text(tensor: &Tensor, options: &PrintOptions) -> Option<Result<String>> {
    let (level, physical) = tensor.batched()?;
    let shown = |text: String| -> Result<String> {
        let mut whole = format!("BatchedTensor(lvl={level}, bdim=0, value=");
        for line in text.split('\n') {
            memory::push_str(&mut whole, if line.is_empty() { "\n" } else { "\n    " })?;
            memory::push_str(&mut whole, line)?;
        }
        memory::push_str(&mut whole, "\n)")?;
        Ok(whole)
    };
    Some(plain_text(&physical, options).and_then(shown))
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match plain_text(self, &print_options()) {
            Ok(text) => f.write_str(&text),
            Err(error) => error.fmt(f),
        }
    }
}
