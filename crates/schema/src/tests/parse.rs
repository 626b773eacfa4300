//! Tests of reading and printing signatures.

use super::{every_signature, schema};
use crate::{Alias, Base, Default, List, Schema, Type};

fn default_of(argument: &str) -> Option<Default> {
    schema(&format!("f({argument}) -> ()")).args.remove(0).default
}

fn type_of(ty: &str) -> Type {
    schema(&format!("f({ty} x) -> ()")).args[0].ty
}

#[track_caller]
fn assert_error(text: &str, position: usize, message: &str) {
    let error = Schema::parse(text).expect_err(text);
    assert_eq!((error.position, error.message.as_str()), (position, message), "{text}");
}

#[test]
fn every_signature_prints_as_written() {
    assert!(every_signature().count() > 400);
    for text in every_signature() {
        assert_eq!(schema(text).to_string(), text);
    }
}

#[test]
fn all_parts_of_a_signature_are_read() {
    let add = schema("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
    assert_eq!((add.name.as_str(), add.overload.as_str()), ("add", "Tensor"));
    let names: Vec<&str> = add.args.iter().map(|arg| arg.name.as_str()).collect();
    assert_eq!(names, ["self", "other", "alpha"]);
    let keyword_only: Vec<bool> = add.args.iter().map(|arg| arg.keyword_only).collect();
    assert_eq!(keyword_only, [false, false, true]);
    assert_eq!(add.args[2].default, Some(Default::Int(1)));
    assert_eq!(add.returns.len(), 1);
    assert_eq!((add.arg("other"), add.arg("alpha"), add.arg("out")), (Some(1), Some(2), None));
}

#[test]
fn names_of_inplace_ops_keep_their_underscores() {
    let text = "_fused_adam_.tensor_lr(Tensor(a!)[] self, *, Tensor lr) -> ()";
    let adam = schema(text);
    assert_eq!((adam.name.as_str(), adam.overload.as_str()), ("_fused_adam_", "tensor_lr"));
    assert_eq!(schema("__rshift__.Scalar(Tensor self, Scalar other) -> Tensor").name, "__rshift__");
    assert!(adam.is_inplace());
}

#[test]
fn types_are_optional_lists_or_lists_of_optionals() {
    let plain = Type::new(Base::Int);
    let list = |size, element_optional| Some(List { size, element_optional });
    assert_eq!(type_of("int"), plain);
    assert_eq!(type_of("int?"), Type { optional: true, ..plain });
    assert_eq!(type_of("int[]"), Type { list: list(None, false), ..plain });
    assert_eq!(type_of("int[2]"), Type { list: list(Some(2), false), ..plain });
    assert_eq!(type_of("int[1]?"), Type { list: list(Some(1), false), optional: true, ..plain });
    assert_eq!(type_of("int?[]"), Type { list: list(None, true), ..plain });
    assert_eq!(type_of("int?[]?"), Type { list: list(None, true), optional: true, ..plain });
    for base in Base::ALL {
        assert_eq!(type_of(base.name()), Type::new(base));
        assert_eq!(type_of(base.name()).to_string(), base.name());
    }
}

#[test]
fn aliases_are_read_on_arguments_and_returned_values() {
    let split = schema("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]");
    let wildcard = Alias { set: 'a', is_write: false, is_wildcard: true };
    assert_eq!(split.args[0].alias, Some(wildcard));
    assert_eq!(split.returns[0].alias, Some(Alias { is_wildcard: false, ..wildcard }));
    let lists = schema("f(Tensor(b!)[] xs, Tensor(c!)? y) -> Tensor(c!)");
    assert!(lists.args.iter().all(|arg| arg.alias.is_some_and(|alias| alias.is_write)));
    assert!(lists.args[0].ty.list.is_some() && lists.args[1].ty.optional);
}

#[test]
fn views_inplace_and_out_forms_are_told_apart() {
    let kinds = |text: &str| {
        let schema = schema(text);
        (schema.is_view(), schema.is_inplace(), schema.is_out())
    };
    assert_eq!(kinds("t(Tensor(a) self) -> Tensor(a)"), (true, false, false));
    assert_eq!(kinds("split(Tensor(a -> *) self) -> Tensor(a)[]"), (true, false, false));
    assert_eq!(kinds("abs(Tensor self) -> Tensor"), (false, false, false));
    assert_eq!(kinds("abs_(Tensor(a!) self) -> Tensor(a!)"), (false, true, false));
    assert_eq!(
        kinds("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
        (false, false, true)
    );
    assert_eq!(kinds("f(Tensor(a) x, Tensor(b) y) -> Tensor(c)"), (false, false, false));
    assert_eq!(kinds("__and__(Tensor self, Tensor other) -> Tensor"), (false, false, false));
    assert_eq!(kinds("step(Tensor(a!) self) -> Tensor(a!)"), (false, false, false));
}

#[test]
fn defaults_take_the_form_of_their_type() {
    assert_eq!(default_of("int x=-1"), Some(Default::Int(-1)));
    assert_eq!(default_of("float x=0"), Some(Default::Float(0.0)));
    assert_eq!(default_of("float x=1e-05"), Some(Default::Float(1e-5)));
    assert_eq!(default_of("float x=-inf"), Some(Default::Float(f64::NEG_INFINITY)));
    assert_eq!(default_of("Scalar x=1"), Some(Default::Int(1)));
    assert_eq!(default_of("Scalar x=1.0"), Some(Default::Float(1.0)));
    assert_eq!(default_of("bool? x=None"), Some(Default::None));
    assert_eq!(default_of("bool x=True"), Some(Default::Bool(true)));
    assert_eq!(default_of("str x='fro'"), Some(Default::Str("fro".into())));
    assert_eq!(default_of(r#"str x="a\"b\\""#), Some(Default::Str("a\"b\\".into())));
    assert_eq!(default_of("int[2] x=1"), Some(Default::Int(1)));
    assert_eq!(default_of("int[] x=[-2,-1]"), Some(Default::Ints(vec![-2, -1])));
    assert_eq!(default_of("int[2] x=[]"), Some(Default::EmptyList));
    assert_eq!(default_of("float[] x=[1, 2.5]"), Some(Default::Floats(vec![1.0, 2.5])));
    assert_eq!(default_of("ScalarType x=long"), Some(Default::Dtype("long".into())));
    let format = Default::MemoryFormat("contiguous_format".into());
    assert_eq!(default_of("MemoryFormat x=contiguous_format"), Some(format));
    assert_eq!(default_of("Tensor x"), None);
}

#[test]
fn reductions_are_numbers() {
    assert_eq!(default_of("int reduction=None_"), Some(Default::Int(0)));
    assert_eq!(default_of("int reduction=Mean"), Some(Default::Int(1)));
    assert_eq!(default_of("int reduction=Sum"), Some(Default::Int(2)));
}

#[test]
fn spaces_are_free_and_the_printed_form_is_canonical() {
    let text = " f ( Tensor(a!)self,int [ 2 ]x )->( Tensor  values ,Tensor ) ";
    assert!(Schema::parse(text).is_err(), "a space before '[' ends the type");
    let text = " f ( Tensor(a!)self,int[ 2 ]x=[ 1 , 2 ],*,str y='z' )->( Tensor  values ,Tensor ) ";
    let canonical = "f(Tensor(a!) self, int[2] x=[1,2], *, str y=\"z\") -> (Tensor values, Tensor)";
    assert_eq!(schema(text).to_string(), canonical);
}

#[test]
fn floats_print_as_python_prints_them() {
    let text = |value: f64| Default::Float(value).to_string();
    assert_eq!(text(1.0), "1.0");
    assert_eq!(text(0.0001), "0.0001");
    assert_eq!(text(0.00001), "1e-05");
    assert_eq!(text(1.5e-10), "1.5e-10");
    assert_eq!(text(1e15), "1000000000000000.0");
    assert_eq!(text(1e16), "1e+16");
    assert_eq!(text(-2.5e100), "-2.5e+100");
    assert_eq!(text(f64::INFINITY), "inf");
}

#[test]
fn errors_give_the_position() {
    assert_error("", 0, "expected the name of the op, found the end");
    assert_error("add.(Tensor x) -> ()", 4, "expected the name of the overload, found '('");
    assert_error("add", 3, "expected '(', found the end");
    assert_error("f(Tensor) -> ()", 8, "expected the name of the argument, found ')'");
    assert_error("f(Tensor x", 10, "expected ',' or ')', found the end");
    assert_error("f(Tensor x Tensor y) -> ()", 11, "expected ',' or ')', found 'T'");
    assert_error("f(Tensor x,) -> ()", 11, "expected a type, found ')'");
    assert_error("f(Tensor x, *) -> ()", 13, "expected ',', found ')'");
    assert_error("f(Tensor x, *, int y, *, int z) -> ()", 22, "expected a type, found '*'");
    assert_error("f(Tensor x) Tensor", 12, "expected '->', found 'T'");
    assert_error("f(Tensor x) ->", 14, "expected a type, found the end");
    assert_error("f() -> Tensor, Tensor", 13, "expected the end, found ','");
    assert_error("f() -> (Tensor, ", 16, "expected a type, found the end");
    assert_error("f(int[0] x) -> ()", 6, "the size of a list must be at least 1, not 0");
    assert_error("f(int[x] x) -> ()", 6, "expected the size of the list or ']', found 'x'");
    assert_error("f(Tensor(ab) x) -> ()", 9, "expected one letter as alias set, found 'ab'");
    assert_error("f(Tensor(a x) -> ()", 11, "expected ')', found 'x'");
    assert_error("f(Tensor(a ->) x) -> ()", 13, "expected '*', found ')'");
    assert_error("f(Tensor x é) -> ()", 11, "expected ',' or ')', found 'é'");
}

#[test]
fn unknown_types_are_refused_with_the_known_ones() {
    let error = Schema::parse("f(Tensor x, Tensr y) -> ()").expect_err("a misspelt type");
    assert_eq!(error.position, 12);
    assert!(error.message.starts_with("unknown type 'Tensr', expected one of Tensor, int, SymInt"));
    assert!(error.to_string().starts_with("at position 12: unknown type"));
}

#[test]
fn names_are_used_once_and_defaults_come_last() {
    assert_error("f(int x, int x) -> ()", 9, "the argument 'x' is declared twice");
    assert_error("f(int x=1, int y) -> ()", 11, "'y' needs a default: one before it has one");
    let repeated = "f() -> (Tensor a, Tensor a)";
    assert_error(repeated, 18, "the returned value 'a' is declared twice");
    schema("f(int x=1, *, int y) -> ()");
}

#[test]
fn a_default_must_suit_its_type() {
    assert_error("f(int x=True) -> ()", 8, "True is no default for an argument of type int");
    assert_error("f(int x=1.5) -> ()", 8, "1.5 is no default for an argument of type int");
    assert_error("f(int[] x=1) -> ()", 10, "1 is no default for an argument of type int[]");
    assert_error("f(int x=[1]) -> ()", 8, "[1] is no default for an argument of type int");
    assert_error("f(Tensor x=None) -> ()", 11, "None is no default for an argument of type Tensor");
    assert_error("f(str x=1) -> ()", 8, "1 is no default for an argument of type str");
    assert_error("f(bool x=yes) -> ()", 9, "unknown default 'yes'");
    assert_error("f(int x=) -> ()", 8, "expected a default, found ')'");
    assert_error("f(str x=\"a) -> ()", 8, "the string is not closed");
    assert_error(r#"f(str x="a\q") -> ()"#, 10, "unknown escape in a string");
    let huge = "f(int x=9223372036854775808) -> ()";
    assert_error(huge, 8, "'9223372036854775808' is not a number that fits in 64 bits");
    assert_error("f(int x=1x) -> ()", 8, "'1x' is not a number that fits in 64 bits");
}
