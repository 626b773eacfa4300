//! From a Python call to an op: choosing the overload, binding the arguments, choosing the form.
//!
//! A [`OpFunction`] is all overloads of one name. A call first tries the quick way: exact types by
//! position or interned keyword, overload by overload; calls that it cannot decide go to the schema
//! crate's binder, which knows every rule and every error text. Nothing here names an op. Start at
//! [`OpFunction::call`].

use crate::convert::{Arena, GivenValue, convert, quick};
use crate::function_mode;
use crate::raw::entry::{Args, Reply};
use crate::result::run;
use crate::torch_function::overrides;
use pullback::dispatch::{Arg, OpDef, Traits};
use pullback::{autograd, binding};
use pullback_schema::bind::{GivenCall, Slot, bind_into};
use pullback_schema::python::{PythonForm, Signature, ValueSource, sort_signatures, struct_fields};
use pullback_schema::{Alias, Argument, Base, Default, Schema, Type};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// The form of its ops that a function calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallKind {
    /// The functional form, with `out=` where there is one.
    Functional,
    /// The form that writes into its first argument.
    Inplace,
}

/// All overloads of one name.
pub(crate) struct OpFunction {
    /// The name it is called by, aliases and underscore included.
    pub(crate) name: String,
    /// The namespace it is found in.
    pub(crate) module: String,
    pub(crate) form: PythonForm,
    pub(crate) kind: CallKind,
    pub(crate) ops: Vec<&'static OpDef>,
    /// Whether it is in a namespace, and no overload of an op by itself.
    pub(crate) is_listed: bool,
    /// The object that stands for it where it is in no namespace: an overload of an op.
    pub(crate) object: OnceLock<Py<PyAny>>,
    overloads: OnceLock<Overloads>,
}

pub(crate) struct Overloads {
    pub(crate) signatures: Vec<Signature>,
    pub(crate) plans: Vec<CallPlan>,
}

/// One overload made ready for calls.
pub(crate) struct CallPlan {
    pub(crate) op: &'static OpDef,
    pub(crate) params: Vec<Param>,
    positional: usize,
    varargs: bool,
    pub(crate) numbers: bool,
    defaults: Vec<Arg<'static>>,
    receiver: Option<usize>,
    pub(crate) kind: CallKind,
    /// The name of the returned named tuple and its fields.
    pub(crate) fields: Option<(String, Vec<String>)>,
    pub(crate) outs: usize,
    pub(crate) returns_nothing: bool,
    /// Whether the op writes to a list and has no results; the function returns that list.
    pub(crate) returns_list: bool,
    /// For an old order of arguments: whether its warning was sent.
    deprecated: Option<AtomicBool>,
}

/// One parameter of a plan.
pub(crate) struct Param {
    pub(crate) ty: Type,
    pub(crate) source: ValueSource,
    pub(crate) required: bool,
    pub(crate) allows_none: bool,
    keyword_only: bool,
    /// Whether a number for this parameter becomes a tensor, because the op itself takes tensors
    /// only.
    pub(crate) wraps: bool,
    /// The interned name; keywords of a call are usually this very object.
    name: Py<PyAny>,
}

/// What a bound call runs with, besides its plain arguments.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) outs: SmallVec<[*mut PyObject; 2]>,
    pub(crate) out_object: Option<*mut PyObject>,
    pub(crate) requires_grad: bool,
}

/// The op's arguments; made once per call and filled in place.
pub(crate) type ArgVec<'a> = SmallVec<[Arg<'a>; 12]>;

/// The result of the quick way for one overload.
enum Quick {
    /// The arguments are bound.
    Bound,
    /// The call is certainly not one of this overload.
    No,
    /// The whole binder must decide.
    Unsure,
}

impl OpFunction {
    pub(crate) fn new(name: String, module: &str, form: PythonForm, kind: CallKind) -> OpFunction {
        OpFunction {
            name,
            module: module.to_owned(),
            form,
            kind,
            ops: Vec::new(),
            is_listed: false,
            object: OnceLock::new(),
            overloads: OnceLock::new(),
        }
    }

    pub(crate) fn overloads(&self, py: Python<'_>) -> &Overloads {
        self.overloads.get_or_init(|| Overloads::new(py, self))
    }

    /// The signatures and the doc text of the first op.
    pub(crate) fn documentation(&self) -> String {
        Python::attach(|py| {
            let signatures = &self.overloads(py).signatures;
            let lines = signatures.iter().map(|s| match s.parameters.as_slice() {
                [] => format!("{}()", self.name),
                _ => format!("{}{s}", self.name),
            });
            let mut text = lines.collect::<Vec<_>>().join("\n");
            if let Some(op) = self.ops.first() {
                text.push_str("\n\n");
                text.push_str(op.doc.trim());
            }
            text
        })
    }

    /// Calls the op; `receiver` is a tensor's wrapper for methods.
    #[inline]
    pub(crate) fn call(
        &self,
        py: Python<'_>,
        receiver: Option<*mut PyObject>,
        args: Args<'_>,
    ) -> Reply {
        self.call_or(py, receiver, args, || self.call_general(py, receiver, args))
    }

    /// Calls the op with arguments of exact types; where they are others, `general` is called.
    #[inline(always)]
    pub(crate) fn call_or(
        &self,
        py: Python<'_>,
        receiver: Option<*mut PyObject>,
        args: Args<'_>,
        general: impl FnOnce() -> Reply,
    ) -> Reply {
        // SAFETY: a live wrapper.
        let is_others = receiver.is_some_and(|receiver| unsafe { overrides(receiver) });
        if is_others || function_mode::is_on() {
            return general();
        }
        if let (Some(receiver), [], [op]) = (receiver, args.all, self.ops.as_slice()) {
            // SAFETY: checked to be a tensor by the method object; the call keeps it alive.
            unsafe {
                if autograd::is_unchanged(op, crate::raw::object::tensor_of(receiver)) {
                    ffi::Py_INCREF(receiver);
                    return Ok(receiver);
                }
            }
        }
        let overloads = self.overloads(py);
        let arena = Arena::default();
        let mut values = ArgVec::new();
        let mut extras = Extras::default();
        for plan in &overloads.plans {
            match plan.quick(py, receiver, args, &arena, &mut values, &mut extras) {
                Quick::Bound => {
                    self.warn_of_old_form(overloads, plan);
                    let reply = run(py, plan, &values, &extras);
                    return if plan.returns_list { given_list(plan, args, reply) } else { reply };
                }
                Quick::No => {}
                Quick::Unsure => break,
            }
        }
        general()
    }

    /// The overrides of types and modes, then the whole binder, with its errors.
    #[cold]
    #[inline(never)]
    pub(crate) fn call_general(
        &self,
        py: Python<'_>,
        receiver: Option<*mut PyObject>,
        args: Args<'_>,
    ) -> Reply {
        if let Some(reply) = crate::torch_function::dispatch(py, self, receiver, args) {
            return reply;
        }
        self.bound(py, receiver, args, |plan, values, extras| {
            self.warn_of_old_form(self.overloads(py), plan);
            let reply = run(py, plan, values, extras);
            if plan.returns_list { given_list(plan, args, reply) } else { reply }
        })
    }

    /// Warns of a call with an old order of arguments, once.
    #[inline]
    fn warn_of_old_form(&self, overloads: &Overloads, plan: &CallPlan) {
        if let Some(given) = &plan.deprecated {
            binding::warn_once(given, &self.old_form_text(overloads, plan));
        }
    }

    /// The text of the warning: what is wrong with an old order of arguments, and which ones
    /// replace them.
    #[cold]
    fn old_form_text(&self, overloads: &Overloads, plan: &CallPlan) -> String {
        let name = &self.name;
        let mut text = format!("This overload of {name} is deprecated:");
        let mut instead = String::new();
        for (signature, other) in overloads.signatures.iter().zip(&overloads.plans) {
            let line = format!("\n\t{name}{signature}");
            if std::ptr::eq(other, plan) {
                text += &line;
            } else if !signature.hidden {
                instead += &line;
            }
        }
        text + "\nConsider using one of the following signatures instead:" + &instead
    }

    /// How many operations on numbers a call makes: those of the op that takes these arguments, if it counts any and does more than
    /// go from element to element. Forms that write into their first argument count as none, as in PyTorch.
    ///
    /// # Errors
    /// `TypeError` if no op takes them.
    pub(crate) fn flops(&self, py: Python<'_>, args: Args<'_>) -> PyResult<Option<u64>> {
        self.bound(py, None, args, |plan, values, _| {
            let is_product = !plan.op.is(Traits::POINTWISE) && plan.kind == CallKind::Functional;
            Ok(if is_product { plan.op.count_flops(values) } else { None })
        })
    }

    /// Calls the whole binder, which chooses the overload and converts the arguments or raises its
    /// errors, and continues with these.
    fn bound<R>(
        &self,
        py: Python<'_>,
        receiver: Option<*mut PyObject>,
        args: Args<'_>,
        then: impl FnOnce(&CallPlan, &[Arg<'_>], &Extras) -> PyResult<R>,
    ) -> PyResult<R> {
        let Overloads { signatures, plans } = self.overloads(py);
        // SAFETY: borrowed references that live through the call.
        let object = |&p: &*mut PyObject| GivenValue(unsafe { Bound::from_borrowed_ptr(py, p) });
        let positional: Vec<GivenValue<'_>> =
            args.all[..args.positional].iter().map(object).collect();
        if let [only] = signatures.as_slice()
            && only.form == PythonForm::Method
            && only.parameters.is_empty()
            && !args.all.is_empty()
        {
            return Err(takes_no_arguments(&self.name, args));
        }
        let mut names = Vec::with_capacity(args.keywords());
        for index in 0..args.keywords() {
            // SAFETY: keyword names are strings.
            let name = unsafe { Bound::from_borrowed_ptr(py, args.name(index)) };
            names.push(name.extract::<String>()?);
        }
        let values = args.all[args.positional..].iter().map(object);
        let keywords: Vec<(&str, GivenValue<'_>)> =
            names.iter().map(String::as_str).zip(values).collect();
        let call = GivenCall { args: &positional, keywords: &keywords };
        let mut slots = Vec::new();
        let chosen = bind_into(signatures, &call, &mut slots)
            .map_err(|error| PyTypeError::new_err(error.0))?;
        let plan = &plans[chosen];
        let arena = Arena::default();
        let mut values = ArgVec::new();
        plan.start(receiver, &mut values);
        let mut extras = Extras::default();
        for (index, (param, slot)) in plan.params.iter().zip(&slots).enumerate() {
            let parameter = &signatures[chosen].parameters[index];
            let given = match *slot {
                Slot::Positional(at) => &positional[at],
                Slot::Keyword(at) => &keywords[at].1,
                Slot::Varargs => {
                    let list = pyo3::types::PyTuple::new(py, positional.iter().map(|v| &v.0))?;
                    let list = arena.keep(list.into_any());
                    let value = convert(&self.name, parameter, plan, param.wraps, list, &arena)?;
                    plan.put(param, value, list.as_ptr(), &mut values, &mut extras)?;
                    continue;
                }
                Slot::Absent => {
                    // An explicit `None` is not the default where `None` is a value of its own.
                    let said = positional.get(index).as_ref().is_some_and(|_| !param.keyword_only)
                        || keywords.iter().any(|(name, _)| *name == parameter.name);
                    if said
                        && param.ty.optional
                        && let ValueSource::Argument(at) = param.source
                    {
                        values[at] = Arg::None;
                    }
                    continue;
                }
            };
            let value = convert(&self.name, parameter, plan, param.wraps, &given.0, &arena)?;
            plan.put(param, value, given.0.as_ptr(), &mut values, &mut extras)?;
        }
        then(plan, &values, &extras)
    }
}

/// The result is the list that was given first, because the op itself returns nothing.
fn given_list(plan: &CallPlan, args: Args<'_>, reply: Reply) -> Reply {
    let nothing = reply?;
    let first = plan.params[0].name.as_ptr();
    // SAFETY: both are strings.
    let is_first = |&at: &usize| unsafe { ffi::PyUnicode_Compare(first, args.name(at)) == 0 };
    let list = match args.all[..args.positional].first() {
        Some(&list) => Some(list),
        None => (0..args.keywords()).find(is_first).map(|at| args.all[at]),
    };
    let Some(list) = list else { return Ok(nothing) };
    // SAFETY: a new reference that is given back, and one to a live argument.
    unsafe {
        ffi::Py_DECREF(nothing);
        ffi::Py_INCREF(list);
    }
    Ok(list)
}

#[cold]
fn takes_no_arguments(name: &str, args: Args<'_>) -> PyErr {
    if args.keywords() > 0 {
        return PyTypeError::new_err(format!("TensorBase.{name}() takes no keyword arguments"));
    }
    PyTypeError::new_err(format!(
        "TensorBase.{name}() takes no arguments ({} given)",
        args.positional
    ))
}

impl CallPlan {
    /// Defaults everywhere, and the receiver in its place.
    #[inline(always)]
    fn start(&self, receiver: Option<*mut PyObject>, values: &mut ArgVec<'_>) {
        values.clear();
        // (One by one: they are few, and a call of `memcpy` costs more than they do.)
        for value in &self.defaults {
            values.push(*value);
        }
        if let (Some(object), Some(at)) = (receiver, self.receiver) {
            // SAFETY: checked to be a tensor by the method object; the call keeps it alive.
            values[at] = Arg::Tensor(unsafe { crate::raw::object::tensor_of(object) });
        }
    }

    /// Binds exact types only.
    #[inline]
    fn quick<'a>(
        &'a self,
        py: Python<'_>,
        receiver: Option<*mut PyObject>,
        args: Args<'a>,
        arena: &'a Arena<'_>,
        values: &mut ArgVec<'a>,
        extras: &mut Extras,
    ) -> Quick {
        let count = args.positional;
        // `view(2, 3)`: the sizes themselves are the arguments.
        let spread = self.varargs && count > 0 && is_exact_int(args.all[0]);
        if count > self.positional && !spread {
            return if self.varargs { Quick::Unsure } else { Quick::No };
        }
        // (Most calls name nothing, and then nothing is cleared.)
        let mut named: SmallVec<[*mut PyObject; 24]> = SmallVec::new();
        if args.keywords() > 0 {
            named.resize(self.params.len(), std::ptr::null_mut());
        }
        for index in 0..args.keywords() {
            let name = args.name(index);
            let Some(at) = self.params.iter().position(|p| p.name.as_ptr() == name) else {
                return Quick::Unsure;
            };
            let is_given = if spread { at == 0 } else { at < count };
            if is_given || !named[at].is_null() {
                return Quick::Unsure;
            }
            named[at] = args.all[count + index];
        }
        self.start(receiver, values);
        *extras = Extras::default();
        let skipped = usize::from(spread);
        if spread && !self.spread_sizes(py, &args.all[..count], arena, values) {
            return Quick::Unsure;
        }
        for (at, param) in self.params.iter().enumerate().skip(skipped) {
            let named = || named.get(at).copied().unwrap_or(std::ptr::null_mut());
            let object = if at < count && !spread { args.all[at] } else { named() };
            if object.is_null() {
                if param.required {
                    return Quick::No;
                }
                continue;
            }
            match quick(py, param, self.numbers, object, arena) {
                Ok(Some(value)) => {
                    if self.put(param, value, object, values, extras).is_err() {
                        return Quick::Unsure;
                    }
                }
                Ok(None) => return Quick::No,
                Err(()) => return Quick::Unsure,
            }
        }
        Quick::Bound
    }

    /// Puts sizes that were given one by one in their place; `false` if one is no exact int.
    fn spread_sizes<'a>(
        &self,
        py: Python<'_>,
        sizes: &[*mut PyObject],
        arena: &'a Arena<'_>,
        values: &mut ArgVec<'a>,
    ) -> bool {
        let ValueSource::Argument(at) = self.params[0].source else { return false };
        let dims: Option<pullback::Dims> =
            sizes.iter().map(|&size| crate::convert::exact_int(py, size)).collect();
        let Some(dims) = dims else { return false };
        values[at] = Arg::Ints(arena.dims(dims));
        true
    }

    /// Puts one converted value where it goes.
    #[inline(always)]
    fn put<'a>(
        &self,
        param: &Param,
        value: Arg<'a>,
        object: *mut PyObject,
        values: &mut ArgVec<'a>,
        extras: &mut Extras,
    ) -> PyResult<()> {
        match param.source {
            ValueSource::Argument(at) => values[at] = value,
            ValueSource::RequiresGrad => extras.requires_grad = matches!(value, Arg::Bool(true)),
            ValueSource::Out => {
                if !matches!(value, Arg::None) {
                    extras.out_object = Some(object);
                    crate::result::collect_outs(object, self, &mut extras.outs)?;
                }
            }
        }
        Ok(())
    }
}

fn is_exact_int(object: *mut PyObject) -> bool {
    // SAFETY: a live argument.
    unsafe { ffi::PyLong_CheckExact(object) != 0 }
}

/// One way in which Python may call an op: the schema as shown, and whether it is shown at all.
struct Variant {
    schema: Schema,
    hidden: bool,
    /// Whether the form is an old one, which is warned of.
    deprecated: bool,
}

/// The forms of an op's signature: its own; for ops that take numbers, those with `Number` in the
/// place of tensors; for ops with `alpha`, `beta` or `value`, the old order of arguments.
fn variants(op: &OpDef, schema: &Schema, form: PythonForm) -> Vec<Variant> {
    let mut all = vec![Variant { schema: schema.clone(), hidden: false, deprecated: false }];
    let is_tensor = |arg: &Argument| arg.ty == Type::new(Base::Tensor) && !arg.is_out();
    let accepts = Signature::new(schema, None, form).accepts_numbers();
    if op.is(Traits::NUMBERS_AS_TENSORS) && !accepts {
        let is_receiver = |arg: &Argument| form == PythonForm::Method && arg.name == "self";
        let may_be_number =
            |&i: &usize| is_tensor(&schema.args[i]) && !is_receiver(&schema.args[i]);
        let candidates: Vec<usize> = (1..schema.args.len()).filter(may_be_number).collect();
        for chosen in 1_u32..1 << candidates.len().min(3) {
            let picked = candidates.iter().enumerate().filter(|(bit, _)| chosen & (1 << bit) != 0);
            all.push(with_numbers(schema, picked.map(|(_, &index)| index), false));
        }
        let takes_leading = form == PythonForm::Function && op.is(Traits::LEADING_NUMBER);
        if takes_leading && schema.args.first().is_some_and(is_tensor) {
            all.push(with_numbers(schema, std::iter::once(0), true));
        }
    }
    if op.module.is_empty() && !schema.name.starts_with('_') {
        let old = old_forms(schema).into_iter();
        all.extend(old.map(|schema| Variant { schema, hidden: true, deprecated: true }));
    }
    all
}

/// The order of arguments that programs of long ago use: factors by position, before the tensors that they go with. So
/// `add(x, alpha, y)`, `addcmul(x, value, y, z)`, `addmm(beta, x, alpha, y, z)` and `addmm(beta, x, y, z)`.
fn old_forms(schema: &Schema) -> Vec<Schema> {
    let is_factor = |name: &str| schema.args.iter().any(|a| a.name == name && a.keyword_only);
    let moved = |factors: &[(&str, usize)]| {
        let mut old = schema.clone();
        for &(name, index) in factors {
            let from = old.args.iter().position(|a| a.name == name).expect("one of its arguments");
            let mut factor = old.args.remove(from);
            (factor.keyword_only, factor.default) = (false, None);
            old.args.insert(index, factor);
        }
        old
    };
    if is_factor("alpha") && is_factor("beta") {
        // (`alpha` is not among the arguments of the shorter one.)
        let mut short = moved(&[("beta", 0)]);
        short.args.retain(|a| a.name != "alpha");
        vec![moved(&[("beta", 0), ("alpha", 2)]), short]
    } else if is_factor("alpha") && schema.arg("other").is_some() {
        vec![moved(&[("alpha", 1)])]
    } else if is_factor("value") && schema.arg("tensor2").is_some() {
        vec![moved(&[("value", 1)])]
    } else {
        Vec::new()
    }
}

fn with_numbers(schema: &Schema, candidates: impl Iterator<Item = usize>, hidden: bool) -> Variant {
    let mut schema = schema.clone();
    for index in candidates {
        schema.args[index].ty = Type::new(Base::Scalar);
        schema.args[index].alias = None;
    }
    Variant { schema, hidden, deprecated: false }
}

impl Overloads {
    fn new(py: Python<'_>, function: &OpFunction) -> Overloads {
        let mut all = Vec::new();
        for &op in &function.ops {
            let has_out = function.form == PythonForm::Function
                && function.kind == CallKind::Functional
                && op.is(Traits::OUT);
            let schema = schema_of(op, function);
            for variant in variants(op, &schema, function.form) {
                let out = has_out.then(|| out_schema(op, &variant.schema));
                let mut signature = Signature::new(&variant.schema, out.as_ref(), function.form);
                signature.name.clone_from(&function.name);
                signature.hidden = variant.hidden;
                // Where the values go is counted in the op's own schema.
                for parameter in &mut signature.parameters {
                    if let ValueSource::Argument(at) = parameter.source {
                        let name = &variant.schema.args[at].name;
                        let own = schema.arg(name).expect("variants keep the names");
                        parameter.source = ValueSource::Argument(own);
                    }
                    let is_method = function.form == PythonForm::Method;
                    if let Some(name) = op.spelling(&function.name, is_method, &parameter.name) {
                        name.clone_into(&mut parameter.name);
                    }
                }
                all.push((op, signature, variant.deprecated));
            }
        }
        let order = sort_signatures(&all.iter().map(|(_, s, _)| s.clone()).collect::<Vec<_>>());
        let mut overloads = Overloads { signatures: Vec::new(), plans: Vec::new() };
        for index in order {
            let (op, signature, is_deprecated) = &all[index];
            let mut plan = CallPlan::new(py, op, signature, function);
            plan.deprecated = is_deprecated.then(|| AtomicBool::new(false));
            overloads.plans.push(plan);
            overloads.signatures.push(signature.clone());
        }
        overloads
    }
}

impl CallPlan {
    fn new(
        py: Python<'_>,
        op: &'static OpDef,
        signature: &Signature,
        function: &OpFunction,
    ) -> CallPlan {
        let schema = &*schema_of(op, function);
        let params = signature.parameters.iter().map(|p| Param {
            ty: p.ty,
            source: p.source,
            required: p.default.is_none(),
            allows_none: p.allows_none(),
            keyword_only: p.keyword_only,
            wraps: p.ty.base == Base::Scalar
                && matches!(p.source, ValueSource::Argument(at) if schema.args[at].ty.base == Base::Tensor),
            name: pyo3::types::PyString::intern(py, &p.name).into_any().unbind(),
        });
        // (Under its older name in the main namespace, its results have that name too.)
        let is_moved = function.module.is_empty() && !op.module.is_empty();
        let name = if is_moved { function.name.clone() } else { schema.name.clone() };
        let fields = struct_fields(&schema.returns)
            .map(|fields| (name, fields.into_iter().map(str::to_owned).collect()));
        CallPlan {
            op,
            params: params.collect(),
            positional: signature.max_positional(),
            varargs: signature.takes_varargs(),
            numbers: signature.accepts_numbers(),
            defaults: schema.args.iter().map(default_arg).collect(),
            receiver: (function.form == PythonForm::Method).then(|| schema.arg("self")).flatten(),
            kind: function.kind,
            fields,
            outs: schema.returns.len(),
            returns_nothing: schema.returns.is_empty(),
            returns_list: function.is_listed && writes_one_list(schema),
            deprecated: None,
        }
    }
}

/// Whether a list of tensors, the first argument, is all that the op writes to, and it has no result.
fn writes_one_list(schema: &Schema) -> bool {
    let is_written = |arg: &Argument| arg.alias.is_some_and(|alias| alias.is_write);
    let mut args = schema.args.iter();
    schema.returns.is_empty()
        && args.next().is_some_and(|first| is_written(first) && first.ty.list.is_some())
        && !args.any(is_written)
}

/// The op's schema as this function shows it: under its older name, the first argument is `self`.
fn schema_of(op: &'static OpDef, function: &OpFunction) -> Cow<'static, Schema> {
    let schema = op.schema();
    let is_moved = function.module.is_empty() && !op.module.is_empty();
    if !is_moved || schema.args.is_empty() {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    "self".clone_into(&mut schema.args[0].name);
    Cow::Owned(schema)
}

/// The schema of the form with `out=`: the op's own with one more argument per result.
fn out_schema(op: &OpDef, schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    let several = schema.returns.len() > 1;
    for (index, returned) in schema.returns.clone().iter().enumerate() {
        let set = char::from(b'a' + index as u8);
        schema.args.push(Argument {
            name: if several { op.outputs[index].to_owned() } else { "out".to_owned() },
            ty: returned.ty,
            default: None,
            keyword_only: true,
            alias: Some(Alias { set, is_write: true, is_wildcard: false }),
        });
    }
    schema
}

/// The schema's own default. Functions are never freed, so that what it holds may live as long.
fn default_arg(arg: &Argument) -> Arg<'static> {
    use pullback::Scalar;
    let is_list = arg.ty.list.is_some();
    let Some(default) = &arg.default else { return Arg::None };
    match default {
        Default::None => Arg::None,
        Default::Bool(b) if arg.ty.base == Base::Scalar => Arg::Scalar(Scalar::Bool(*b)),
        Default::Bool(b) => Arg::Bool(*b),
        Default::Int(i) if arg.ty.base == Base::Scalar => Arg::Scalar(Scalar::Int(*i)),
        Default::Int(i) if arg.ty.base == Base::Float && !is_list => Arg::Float(*i as f64),
        Default::Int(i) if is_list => {
            let count = arg.ty.list.and_then(|l| l.size).unwrap_or(1);
            // bounded: by the signature.
            Arg::Ints(Vec::leak(vec![*i; count]))
        }
        Default::Int(i) => Arg::Int(*i),
        Default::Float(f) if arg.ty.base == Base::Scalar => Arg::Scalar(Scalar::Float(*f)),
        Default::Float(f) => Arg::Float(*f),
        Default::Str(s) => Arg::Str(String::leak(s.clone())),
        Default::Ints(v) => Arg::Ints(Vec::leak(v.clone())),
        Default::Floats(v) => Arg::Floats(Vec::leak(v.clone())),
        Default::EmptyList if arg.ty.base == Base::Tensor => Arg::Tensors(&[]),
        Default::EmptyList => Arg::Ints(&[]),
        Default::MemoryFormat(name) => {
            crate::dtype::memory_format_by_name(name).map_or(Arg::None, Arg::MemoryFormat)
        }
        Default::Dtype(name) => crate::dtype::dtype_by_name(name).map_or(Arg::None, Arg::DType),
    }
}
