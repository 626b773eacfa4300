//! Tests of the texts and the order that Python sees.

use super::{every_signature, schema};
use crate::python::{
    PythonForm, Signature, ValueSource, sort_overloads, sort_signatures, struct_fields,
};

fn shown(text: &str, out: Option<&str>, form: PythonForm) -> String {
    Signature::new(&schema(text), out.map(schema).as_ref(), form).to_string()
}

fn stub(text: &str, out: Option<&str>, form: PythonForm) -> Vec<String> {
    Signature::new(&schema(text), out.map(schema).as_ref(), form).stub()
}

const ADD: &str = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
const ADD_OUT: &str =
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
const MAX_DIM: &str =
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)";
const MAX_DIM_OUT: &str = "max.dim_max(Tensor self, int dim, bool keepdim=False, *, \
     Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)";
const ZEROS: &str = "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, \
     Device? device=None, bool? pin_memory=None) -> Tensor";

#[test]
fn a_function_calls_self_input_and_a_method_leaves_it_out() {
    let function = "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)";
    assert_eq!(shown(ADD, Some(ADD_OUT), PythonForm::Function), function);
    assert_eq!(shown(ADD, None, PythonForm::Method), "(Tensor other, *, Number alpha = 1)");
    let pow = "pow.Scalar(Scalar self, Tensor exponent) -> Tensor";
    assert_eq!(shown(pow, None, PythonForm::Function), "(Number self, Tensor exponent)");
    assert_eq!(shown("abs(Tensor self) -> Tensor", None, PythonForm::Method), "no arguments");
}

#[test]
fn several_results_are_one_out() {
    let expected = "(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)";
    assert_eq!(shown(MAX_DIM, Some(MAX_DIM_OUT), PythonForm::Function), expected);
    let signature =
        Signature::new(&schema(MAX_DIM), Some(&schema(MAX_DIM_OUT)), PythonForm::Function);
    let sources: Vec<ValueSource> = signature.parameters.iter().map(|p| p.source).collect();
    let argument = ValueSource::Argument;
    assert_eq!(sources, [argument(0), argument(1), argument(2), ValueSource::Out]);
}

#[test]
fn tensor_options_come_last_with_requires_grad() {
    let options = "torch.dtype dtype = None, torch.layout layout = None, \
         torch.device device = None, bool pin_memory = False, bool requires_grad = False";
    let zeros = format!("(tuple of ints size, *, {options})");
    assert_eq!(shown(ZEROS, None, PythonForm::Function), zeros);
    let like = "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
    let expected =
        format!("(Tensor input, *, torch.memory_format memory_format = None, {options})");
    assert_eq!(shown(like, None, PythonForm::Function), expected);
}

#[test]
fn an_op_that_is_not_for_programs_has_the_options_of_its_schema() {
    let copy = "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None, bool non_blocking=False) -> Tensor";
    let expected = "(Tensor input, *, torch.dtype dtype = None, torch.layout layout = None, \
         torch.device device = None, bool pin_memory = None, bool non_blocking = False)";
    assert_eq!(shown(copy, None, PythonForm::Function), expected);
}

#[test]
fn a_dtype_alone_is_an_ordinary_parameter() {
    let sum = "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, \
         ScalarType? dtype=None) -> Tensor";
    let expected = "(tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)";
    assert_eq!(shown(sum, None, PythonForm::Method), expected);
}

#[test]
fn defaults_are_shown_as_in_error_messages() {
    let norm = "f(Tensor self, int[] dim=[-2,-1], str mode=\"fro\", float p=2, int[2] s=[]) -> ()";
    let expected =
        "(tuple of ints dim = {-2,-1}, str mode = \"fro\", float p = 2, tuple of ints s = None)";
    assert_eq!(shown(norm, None, PythonForm::Method), expected);
}

#[test]
fn stubs_are_typed() {
    let add = "def add(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, \
         alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor: ...";
    assert_eq!(stub(ADD, Some(ADD_OUT), PythonForm::Function), [add]);
    let max = "def max(self, dim: _int, keepdim: _bool = False) -> return_types.max: ...";
    assert_eq!(stub(MAX_DIM, None, PythonForm::Method), [max]);
    let random = "random_.from(Tensor(a!) self, int from, int? to, *, \
         Generator? generator=None) -> Tensor(a!)";
    let expected = "def random_(self, from_: _int, to: _int | None, *, \
         generator: Generator | None = None) -> Tensor: ...";
    assert_eq!(stub(random, None, PythonForm::Method), [expected]);
    let split = "split(Tensor(a -> *) self, int[] sizes=[1]) -> Tensor(a)[]";
    let expected = [
        "def split(self, sizes: _size = (1,)) -> tuple[Tensor, ...]: ...",
        "def split(self, *sizes: _int) -> tuple[Tensor, ...]: ...",
    ];
    assert_eq!(stub(split, None, PythonForm::Method), expected);
}

#[test]
fn a_lone_int_list_may_be_spread() {
    let view = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
    assert_eq!(
        stub(view, None, PythonForm::Method)[1],
        "def view(self, *size: _int) -> Tensor: ..."
    );
    assert_eq!(stub(view, None, PythonForm::Function).len(), 1);
    assert_eq!(stub(ZEROS, None, PythonForm::Function).len(), 2);
}

#[test]
fn only_several_named_values_make_a_named_tuple() {
    assert_eq!(struct_fields(&schema(MAX_DIM).returns), Some(vec!["values", "indices"]));
    assert_eq!(struct_fields(&schema("f() -> (Tensor, Tensor)").returns), None);
    assert_eq!(struct_fields(&schema("f() -> Tensor out").returns), None);
}

/// The overloads of the op `name` in the order they are tried.
fn tried(name: &str) -> Vec<String> {
    let overloads = every_signature().map(schema).filter(|s| s.name == name && !s.is_out());
    let overloads: Vec<_> = overloads.collect();
    sort_overloads(&overloads).into_iter().map(|i| overloads[i].overload.clone()).collect()
}

#[test]
fn the_less_specific_overload_comes_later() {
    assert_eq!(tried("add"), ["Tensor", "Scalar"]);
    assert_eq!(tried("pow"), ["Tensor_Tensor", "Scalar", "Tensor_Scalar"]);
    assert_eq!(tried("sum"), ["", "dim_IntList"]);
    assert_eq!(tried("std"), ["dim", "correction", ""]);
    assert_eq!(tried("max"), ["", "other", "dim"]);
    assert_eq!(tried("where"), ["", "self", "ScalarSelf", "ScalarOther", "Scalar"]);
    assert_eq!(tried("movedim"), ["int", "intlist"]);
    assert_eq!(tried("clamp"), ["Tensor", ""]);
    assert_eq!(tried("view"), ["dtype", ""]);
    assert_eq!(tried("sort"), ["stable", ""]);
    let normal = ["Tensor_Tensor", "Tensor_float", "float_Tensor", "float_float"];
    assert_eq!(tried("normal"), normal);
}

#[test]
fn the_order_is_a_permutation_whatever_the_input_order() {
    let mut schemas: Vec<_> = every_signature().map(schema).collect();
    let first: Vec<_> = sort_overloads(&schemas).into_iter().map(|i| schemas[i].clone()).collect();
    assert_eq!(first.len(), schemas.len());
    schemas.reverse();
    let second: Vec<_> = sort_overloads(&schemas).into_iter().map(|i| schemas[i].clone()).collect();
    assert_eq!(first, second);
}

#[test]
fn hidden_overloads_come_last() {
    let hidden = schema("add(Tensor self, Scalar alpha, Tensor other) -> Tensor");
    let mut hidden = Signature::new(&hidden, None, PythonForm::Function);
    hidden.hidden = true;
    let shown = Signature::new(&schema(ADD), None, PythonForm::Function);
    assert_eq!(sort_signatures(&[hidden, shown]), [1, 0]);
}

#[test]
fn every_signature_has_a_text_and_a_stub() {
    for text in every_signature() {
        for form in [PythonForm::Function, PythonForm::Method] {
            let signature = Signature::new(&schema(text), None, form);
            assert!(signature.to_string().starts_with(['(', 'n']), "{text}");
            assert!(signature.stub().iter().all(|line| line.ends_with(": ...")), "{text}");
        }
    }
}
