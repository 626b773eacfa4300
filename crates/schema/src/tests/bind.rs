//! Tests of binding, with values that stand for Python objects.

use std::borrow::Cow;

use super::schema;
use crate::bind::{Bound, Check, Elements, Given, GivenCall, Slot, bind, unpack_error};
use crate::python::{Parameter, PythonForm, Signature, sort_signatures};
use crate::{Base, Type};

#[derive(Clone, Debug)]
enum Value {
    None,
    Bool,
    Int,
    Float,
    Str,
    Tensor,
    Tuple(Vec<Value>),
    List(Vec<Value>),
}

use Value::{Float, Int, Str, Tensor};

impl Value {
    fn suits(&self, base: Base, numbers: bool) -> bool {
        match base {
            Base::Tensor => matches!(self, Tensor) || (numbers && matches!(self, Int | Float)),
            Base::Int | Base::SymInt => matches!(self, Int),
            Base::Float => matches!(self, Int | Float),
            Base::Scalar => matches!(self, Int | Float | Value::Bool),
            Base::Bool => matches!(self, Value::Bool),
            Base::Str => matches!(self, Str),
            _ => false,
        }
    }

    fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Tuple(items) | Value::List(items) => Some(items),
            _ => None,
        }
    }

    fn check_list(&self, ty: Type) -> Check {
        let Some(items) = self.items() else {
            let is_lone = ty.list.is_some_and(|list| list.size.is_some());
            let suits = is_lone && self.suits(ty.base, false);
            return if suits { Check::Accepted } else { Check::Refused };
        };
        let seen = if ty.base == Base::Tensor { items } else { &items[..items.len().min(1)] };
        let Some(position) = seen.iter().position(|item| !item.suits(ty.base, false)) else {
            return Check::Accepted;
        };
        let type_name = items[position].type_name().into_owned();
        match ty.base {
            Base::Tensor => Check::NotTensor { position, type_name },
            _ => Check::RefusedElement { position, type_name },
        }
    }
}

impl Given for Value {
    fn type_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Value::None => "NoneType",
            Value::Bool => "bool",
            Int => "int",
            Float => "float",
            Str => "str",
            Tensor => "Tensor",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
        })
    }

    fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    fn is_int(&self) -> bool {
        matches!(self, Int)
    }

    fn check(&self, parameter: &Parameter, numbers: bool) -> Check {
        if parameter.ty.list.is_some() {
            return self.check_list(parameter.ty);
        }
        if self.suits(parameter.ty.base, numbers) { Check::Accepted } else { Check::Refused }
    }

    fn elements(&self) -> Option<Elements> {
        let type_names = self.items()?.iter().map(|item| item.type_name().into_owned()).collect();
        Some(Elements { is_tuple: matches!(self, Value::Tuple(_)), type_names })
    }
}

fn overloads(texts: &[&str], form: PythonForm) -> Vec<Signature> {
    let signature = |text: &&str| Signature::new(&schema(text), None, form);
    let all: Vec<Signature> = texts.iter().map(signature).collect();
    sort_signatures(&all).into_iter().map(|index| all[index].clone()).collect()
}

type Outcome = Result<Bound, String>;

fn call(overloads: &[Signature], args: &[Value], keywords: &[(&str, Value)]) -> Outcome {
    bind(overloads, &GivenCall { args, keywords }).map_err(|error| error.0)
}

fn method(text: &str, args: &[Value], keywords: &[(&str, Value)]) -> Outcome {
    call(&overloads(&[text], PythonForm::Method), args, keywords)
}

#[track_caller]
fn assert_message(outcome: Outcome, message: &str) {
    assert_eq!(outcome.expect_err("the call must not bind"), message);
}

const TRANSPOSE: &str = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
const CAT: &str = "cat(Tensor[] tensors, int dim=0) -> Tensor";
const VIEW: &str = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
const SUM: [&str; 2] = [
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
];
const FILL: [&str; 2] = [
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
];

#[test]
fn values_bind_by_position_then_by_keyword() {
    use Slot::{Absent, Keyword, Positional};
    let slots = |args: &[Value], keywords: &[(&str, Value)]| {
        method(TRANSPOSE, args, keywords).expect("the call binds").slots
    };
    assert_eq!(slots(&[Int, Int], &[]), [Positional(0), Positional(1)]);
    assert_eq!(slots(&[Int], &[("dim1", Int)]), [Positional(0), Keyword(0)]);
    assert_eq!(slots(&[], &[("dim1", Int), ("dim0", Int)]), [Keyword(1), Keyword(0)]);
    let one = method("relu(Tensor self, int? x=None) -> Tensor", &[Value::None], &[]);
    assert_eq!(one.expect("None is the default").slots, [Absent]);
}

#[test]
fn numpy_names_are_accepted() {
    let sum = overloads(&SUM, PythonForm::Function);
    let keywords = [("x", Tensor), ("axis", Int), ("keepdims", Value::Bool)];
    let bound = call(&sum, &[], &keywords).expect("NumPy's names bind");
    assert_eq!((bound.overload, bound.slots[2]), (1, Slot::Keyword(2)));
}

#[test]
fn ints_are_spread_over_a_lone_list() {
    assert_eq!(method(VIEW, &[Int, Int], &[]).map(|b| b.slots), Ok(vec![Slot::Varargs]));
    assert_eq!(method(VIEW, &[Int], &[]).map(|b| b.slots), Ok(vec![Slot::Varargs]));
    let list = Value::List(vec![Int, Str]);
    assert_eq!(method(VIEW, &[list], &[]).map(|b| b.slots), Ok(vec![Slot::Positional(0)]));
    let message = "view() takes 1 positional argument but 2 were given";
    assert_message(method(VIEW, &[Str, Int], &[]), message);
    let message = "view(): argument 'size' (position 1) must be tuple of ints, not str";
    assert_message(method(VIEW, &[Str], &[]), message);
    let message = "view(): argument 'size' must be tuple of ints, not int";
    assert_message(method(VIEW, &[], &[("size", Int)]), message);
}

#[test]
fn the_first_overload_that_binds_wins() {
    let fill = overloads(&FILL, PythonForm::Method);
    assert_eq!(call(&fill, &[Tensor, Tensor], &[]).map(|b| b.overload), Ok(0));
    assert_eq!(call(&fill, &[Tensor, Float], &[]).map(|b| b.overload), Ok(1));
}

#[test]
fn numbers_stand_for_tensors_in_arithmetic_only() {
    let add = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    assert!(method(add, &[Int], &[]).is_ok());
    assert!(method(&add.replace("add.", "add_."), &[Float], &[]).is_ok());
    let message = "dot(): argument 'other' (position 1) must be Tensor, not int";
    assert_message(method(&add.replace("add.", "dot."), &[Int], &[]), message);
}

#[test]
fn too_many_arguments_are_counted() {
    let message = "transpose() takes 2 positional arguments but 3 were given";
    assert_message(method(TRANSPOSE, &[Int, Int, Int], &[]), message);
    let message = "cat() takes from 1 to 2 positional arguments but 3 were given";
    let three = [Value::List(vec![Tensor]), Int, Int];
    assert_message(method(CAT, &three, &[]), message);
    let clone = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor";
    let message = "clone() takes 0 positional arguments but 1 was given";
    assert_message(method(clone, &[Int], &[]), message);
}

#[test]
fn missing_arguments_are_listed() {
    let message = "transpose() missing 1 required positional arguments: \"dim1\"";
    assert_message(method(TRANSPOSE, &[Int], &[]), message);
    let message = "transpose() missing 2 required positional argument: \"dim0\", \"dim1\"";
    assert_message(method(TRANSPOSE, &[], &[]), message);
}

#[test]
fn wrong_keywords_are_named() {
    let lone = Value::List(vec![Tensor]);
    let message = "cat() got an unexpected keyword argument 'foo'";
    assert_message(method(CAT, std::slice::from_ref(&lone), &[("foo", Int)]), message);
    let message = "cat() got multiple values for argument 'dim'";
    assert_message(method(CAT, &[lone, Int], &[("dim", Int)]), message);
}

#[test]
fn a_keyword_that_is_close_to_one_is_told_which() {
    let lone = Value::List(vec![Tensor]);
    let message = "cat() got an unexpected keyword argument 'dmi'; did you mean 'dim'?";
    assert_message(method(CAT, std::slice::from_ref(&lone), &[("dmi", Int)]), message);
    let fill = overloads(&FILL, PythonForm::Method);
    let Err(message) = call(&fill, &[Tensor], &[("vlaue", Int)]) else { panic!("it binds") };
    assert!(message.ends_with("\ndid you mean 'value'?"), "{message}");
    // A keyword that is given already is not suggested.
    let Err(message) = call(&fill, &[], &[("value", Int), ("vlaue", Int)]) else {
        panic!("it binds")
    };
    assert!(!message.contains("did you mean"), "{message}");
}

#[test]
fn wrong_types_are_named_with_position() {
    let message = "transpose(): argument 'dim1' (position 2) must be int, not str";
    assert_message(method(TRANSPOSE, &[Int, Str], &[]), message);
    let message = "transpose(): argument 'dim1' must be int, not str";
    assert_message(method(TRANSPOSE, &[Int], &[("dim1", Str)]), message);
    let flip = "flip(Tensor self, int[] dims) -> Tensor";
    let message = "flip(): argument 'dims' (position 1) must be tuple of ints, \
         but found element of type str at pos 0";
    assert_message(method(flip, &[Value::Tuple(vec![Str])], &[]), message);
}

#[test]
fn a_list_with_something_else_than_tensors_is_refused_at_once() {
    let message = "expected Tensor as element 1 in argument 0, but got int";
    assert_message(method(CAT, &[Value::List(vec![Tensor, Int])], &[]), message);
}

#[test]
fn one_overload_of_fitting_length_gives_its_own_error() {
    let sum = overloads(&SUM, PythonForm::Function);
    let message = "sum(): argument 'input' (position 1) must be Tensor, not str";
    assert_message(call(&sum, &[Str], &[]), message);
}

#[test]
fn otherwise_all_overloads_are_listed() {
    let message = "sum() received an invalid combination of arguments - got (str), but expected one of:\n \
         * (*, torch.dtype dtype = None)\n \
         * (tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)\n";
    assert_message(call(&overloads(&SUM, PythonForm::Method), &[Str], &[]), message);
}

const TYPES: &str = "      didn't match because some of the arguments have invalid types: ";

fn fill_message(got: &str, why: &str) -> String {
    format!(
        "masked_fill() received an invalid combination of arguments - got {got}, but expected one of:\n \
         * (Tensor mask, Tensor value)\n{why}\n * (Tensor mask, Number value)\n{why}\n"
    )
}

#[test]
fn overloads_of_the_same_length_mark_the_wrong_types() {
    let fill = overloads(&FILL, PythonForm::Method);
    let message = fill_message("(Tensor, str)", &format!("{TYPES}(Tensor, !str!)"));
    assert_message(call(&fill, &[Tensor, Str], &[]), &message);
    let message = fill_message("(Tensor, value=str)", &format!("{TYPES}(Tensor, !value=str!)"));
    assert_message(call(&fill, &[Tensor], &[("value", Str)]), &message);
    let tuples = [Value::List(vec![Int, Int]), Value::Tuple(vec![Int])];
    let why = format!("{TYPES}(!list of [int, int]!, !tuple of (int,)!)");
    assert_message(call(&fill, &tuples, &[]), &fill_message("(list, tuple)", &why));
    let why = "      didn't match because some of the keywords were incorrect: foo";
    let message = fill_message("(Tensor, foo=str)", why);
    assert_message(call(&fill, &[Tensor], &[("foo", Str)]), &message);
}

#[test]
fn hidden_overloads_bind_but_are_not_listed() {
    let visible = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    let deprecated = "add(Tensor self, Scalar alpha, Tensor other) -> Tensor";
    let mut add = overloads(&[visible], PythonForm::Method);
    let mut hidden = overloads(&[deprecated], PythonForm::Method).remove(0);
    hidden.hidden = true;
    add.push(hidden);
    assert_eq!(call(&add, &[Int, Tensor], &[]).map(|b| b.overload), Ok(1));
    let start = "add() received an invalid combination of arguments - got ";
    let expected = "but expected (Tensor other, *, Number alpha = 1)";
    assert_message(call(&add, &[], &[]), &format!("{start}(), {expected}"));
    let message = format!("{start}(!int!, !int!, !int!), {expected}");
    assert_message(call(&add, &[Int, Int, Int], &[]), &message);
    let message = format!("{start}unrecognized keyword arguments: foo");
    let two = [("foo", Int)];
    assert_message(call(&add, &[Tensor, Tensor, Tensor], &two), &message);
}

#[test]
fn a_late_element_of_an_int_list_has_its_own_message() {
    let view = overloads(&[VIEW], PythonForm::Method).remove(0);
    let message = "view(): argument 'size' failed to unpack the object at pos 2 with error \
         \"type must be tuple of ints,but got str\"";
    assert_eq!(unpack_error("view", &view.parameters[0], 1, "str"), message);
}
