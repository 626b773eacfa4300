//! The profiler without Python: who is within whom, which op made which node, times, memory, traces.

use pullback::autograd::{self, BackwardOptions, Context, Custom, Function, apply_one, grad};
use pullback::dispatch::{Arg, Value};
use pullback::gradcheck::Sampler;
use pullback::prof::{
    self, Config, Event, Name, Open, Range, RangeKind, RangeObserver, Recorded, RecordedInput,
};
use pullback::{DType, Device, Result, Tensor, TensorSpec, autocast, enable_grad, no_grad, ops};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread;

/// Twice the same, one behind the other.
fn joined(x: &Tensor) -> Result<Tensor> {
    let cat = ops::registry().find(|op| op.name == "cat").expect("there is such an op");
    let list = [x.clone(), x.clone()];
    Ok(autograd::call(cat, &[Arg::Tensors(&list), Arg::Int(0)])?.one())
}

fn leaf(values: &[f64]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64])?.with_grad()
}

fn profiled(config: Config, run: impl FnOnce() -> Result<()>) -> Result<Recorded> {
    let profile = prof::profile(config)?;
    run()?;
    Ok(profile.finish())
}

/// The number of the only event of this name.
fn only(recorded: &Recorded, name: &str) -> usize {
    let mut found =
        (0..recorded.events().len()).filter(|&at| recorded.events()[at].name.to_string() == name);
    let at = found.next().unwrap_or_else(|| panic!("no {name} in {recorded}"));
    assert_eq!(found.next(), None, "several {name} in {recorded}");
    at
}

fn name_of(recorded: &Recorded, at: Option<usize>) -> String {
    at.map_or_else(String::new, |at| recorded.events()[at].name.to_string())
}

#[test]
fn ops_nodes_and_ranges_are_events_within_each_other() -> Result<()> {
    let x = leaf(&[1.0, 2.0, 3.0])?;
    let recorded = profiled(Config::default(), || {
        let _outer = prof::record_function("outer");
        let y = {
            let _inner = prof::record_function("inner");
            x.exp()?
        };
        y.sum()?.backward()
    })?;
    let events = recorded.events();
    let parent = |name| name_of(&recorded, events[only(&recorded, name)].parent());
    assert_eq!(parent("outer"), "");
    assert_eq!(parent("inner"), "outer");
    assert_eq!(parent("aten::exp"), "inner");
    assert_eq!(parent("aten::sum"), "outer");
    let evaluation = "autograd::engine::evaluate_function: ExpBackward0";
    assert_eq!(parent(evaluation), "outer");
    assert_eq!(parent("ExpBackward0"), evaluation);
    assert_eq!(parent("aten::mul"), "ExpBackward0");
    assert_eq!(
        parent("torch::autograd::AccumulateGrad"),
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    );
    assert_eq!(events[only(&recorded, "outer")].kind, RangeKind::User);
    assert_eq!(events[only(&recorded, "ExpBackward0")].kind, RangeKind::Backward);
    assert_eq!(events[only(&recorded, "ExpBackward0")].kind.scope(), 1);
    // In the order in which they began, and each within what is around it.
    assert!(events.windows(2).all(|pair| pair[0].start <= pair[1].start));
    for event in events {
        assert!(event.start <= event.end && event.end <= recorded.duration());
        if let Some(around) = event.parent().map(|at| &events[at]) {
            assert!(around.start <= event.start && event.end <= around.end, "{event:?}");
        }
    }
    Ok(())
}

#[test]
fn parts_of_composites_are_within_them_and_have_no_number_below_recording() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f64, 2.0, 3.0, 4.0], &[2, 2])?.with_grad()?;
    let w = x.detach()?;
    let recorded = profiled(Config::default(), || x.linear(&w, None).map(drop))?;
    let outer = only(&recorded, "aten::linear");
    let within: Vec<&Event> =
        recorded.events().iter().filter(|event| event.parent() == Some(outer)).collect();
    assert!(!within.is_empty(), "{recorded}");
    let without = profiled(Config::default(), || {
        let _off = no_grad();
        x.exp().map(drop)
    })?;
    assert_eq!(without.events()[only(&without, "aten::exp")].sequence_nr, -1);
    Ok(())
}

#[test]
fn forms_that_write_have_names_of_their_own() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f64, 2.0], &[2])?;
    let recorded = profiled(Config::default(), || {
        x.mul_(&x)?;
        x.zero_()?;
        x.detach()?.fill_(3.0.into())?;
        Ok(())
    })?;
    let names: Vec<String> = recorded.events().iter().map(|e| e.name.to_string()).collect();
    for name in ["aten::mul_", "aten::zero_", "aten::fill_"] {
        assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{names:?}");
    }
    let mul = &recorded.events()[only(&recorded, "aten::mul_")];
    assert_eq!(mul.name.overload(), "Tensor");
    assert!(matches!(mul.name, Name::Inplace(_)));
    Ok(())
}

/// The op that a node is linked to, by name, for each node.
fn links(recorded: &Recorded) -> BTreeMap<String, String> {
    let named = |at| name_of(recorded, Some(at));
    recorded.links().into_iter().map(|(op, node)| (named(node), named(op))).collect()
}

#[test]
fn nodes_are_linked_to_the_ops_that_made_them() -> Result<()> {
    let x = leaf(&[1.0, 2.0])?;
    let recorded = profiled(Config::default(), || x.exp()?.sin()?.sum()?.backward())?;
    let expected = [
        ("ExpBackward0", "aten::exp"),
        ("SinBackward0", "aten::sin"),
        ("SumBackward0", "aten::sum"),
    ];
    let expected = expected.map(|(node, op)| (node.to_owned(), op.to_owned()));
    assert_eq!(links(&recorded), BTreeMap::from(expected));
    for (op, node) in recorded.links() {
        let (op, node) = (&recorded.events()[op], &recorded.events()[node]);
        assert_eq!(op.sequence_nr, node.sequence_nr);
        assert_eq!((op.thread, op.forward_thread), (node.forward_thread, 0));
    }
    Ok(())
}

#[test]
fn nodes_of_other_threads_name_these_and_are_not_linked_to_ops_of_the_same_number() -> Result<()> {
    let x = leaf(&[1.0, 2.0])?;
    // Each thread counts for itself: numbers repeat.
    let there = thread::scope(|scope| {
        scope
            .spawn(|| {
                let recorded = profiled(Config::default(), || Ok(()))?;
                assert!(recorded.events().is_empty());
                x.sin()
            })
            .join()
            .unwrap()
    })?;
    let thread = there.grad_fn()?.unwrap().thread_id();
    let recorded = profiled(Config::default(), || {
        let here = thread::scope(|scope| {
            // (A thread of the program is profiled only if it says so itself.)
            assert!(!scope.spawn(prof::is_profiling).join().unwrap());
            x.exp()
        })?;
        (here.sum()? + there.sum()?).get()?.backward()
    })?;
    let sin = &recorded.events()[only(&recorded, "SinBackward0")];
    assert_eq!(u64::from(sin.forward_thread), thread);
    assert_ne!(sin.forward_thread, sin.thread);
    assert!(!links(&recorded).contains_key("SinBackward0"));
    assert_eq!(links(&recorded)["ExpBackward0"], "aten::exp");
    Ok(())
}

#[test]
fn forwards_on_several_threads_are_told_apart() -> Result<()> {
    let profile_one = |value: f64| -> Result<Recorded> {
        let x = leaf(&[value, 2.0])?;
        profiled(Config::default(), || x.exp()?.sum()?.backward())
    };
    let recorded: Vec<Recorded> = thread::scope(|scope| {
        let run = |at| scope.spawn(move || profile_one(f64::from(at)));
        let all: Vec<_> = (0..4).map(run).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Result<_>>()
    })?;
    let threads: HashSet<u32> = recorded.iter().map(|one| one.events()[0].thread).collect();
    assert_eq!(threads.len(), 4);
    for one in &recorded {
        assert_eq!(links(one)["ExpBackward0"], "aten::exp");
        assert!(one.events().iter().all(|event| event.thread == one.events()[0].thread));
    }
    Ok(())
}

#[test]
fn a_backward_that_goes_on_in_another_thread_takes_the_profile_along() -> Result<()> {
    // Backwards nested so deep that they go on with an empty stack.
    fn nested(depth: u32, x: &Tensor) -> Result<Tensor> {
        let inner = x.detach()?.with_grad()?;
        let forward = |_: &mut Context, [x]: [&Tensor; 1]| x.exp();
        let backward = move |_: &Context, grad: Tensor| {
            if depth > 0 {
                let _on = enable_grad();
                nested(depth - 1, &inner)?.sum()?.backward()?;
            }
            Ok([Some(grad)])
        };
        Custom::new("Nested", forward, backward).apply([x])
    }
    let x = leaf(&[0.5])?;
    let recorded = profiled(Config { memory: true, ..Config::default() }, || {
        nested(70, &x)?.sum()?.backward()
    })?;
    let threads: HashSet<u32> = recorded.events().iter().map(|event| event.thread).collect();
    assert!(threads.len() >= 2, "{threads:?}");
    let count = recorded.events().iter().filter(|e| e.name.to_string() == "aten::exp").count();
    assert_eq!(count, 71);
    Ok(())
}

#[test]
fn times_of_their_own_add_up_to_the_time_of_the_outermost() -> Result<()> {
    let x = leaf(&[1.0; 64])?;
    let recorded = profiled(Config::default(), || {
        for _ in 0..20 {
            x.exp()?.mul(&x)?.sum()?.backward()?;
        }
        Ok(())
    })?;
    let all: u64 = recorded.self_times().iter().sum();
    let outermost = recorded.events().iter().filter(|event| event.parent().is_none());
    assert_eq!(all, outermost.map(Event::duration).sum::<u64>());
    let totals = recorded.totals();
    assert_eq!(totals.iter().map(|total| total.self_time).sum::<u64>(), all);
    assert_eq!(totals.iter().map(|t| t.count).sum::<u64>(), recorded.events().len() as u64);
    assert!(totals.windows(2).all(|pair| pair[0].self_time >= pair[1].self_time));
    assert_eq!(totals.iter().find(|total| total.name == "aten::exp").unwrap().count, 20);
    let text = recorded.to_string();
    assert!(text.starts_with("Name") && text.lines().count() == totals.len() + 1, "{text}");
    Ok(())
}

#[test]
fn inputs_are_kept_on_demand() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f32; 6], &[2, 3])?;
    let run = || {
        joined(&x)?.sum()?;
        x.transpose(0, 1)?.exp().map(drop)
    };
    let plain = profiled(Config::default(), run)?;
    assert!(plain.events().iter().all(|event| event.inputs().is_none()));
    let recorded = profiled(Config { inputs: true, ..Config::default() }, run)?;
    let inputs = |name| recorded.events()[only(&recorded, name)].inputs().unwrap();
    let [RecordedInput::List(list), RecordedInput::Value(_)] = inputs("aten::cat") else {
        panic!("{recorded:?}")
    };
    assert_eq!(list.len(), 2);
    let Some(RecordedInput::Tensor { shape, strides, dtype, .. }) = inputs("aten::exp").first()
    else {
        panic!("{recorded:?}")
    };
    assert_eq!((shape.as_slice(), strides.as_slice()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(*dtype, DType::F32);
    Ok(())
}

#[test]
fn memory_is_noted_where_it_is_taken_and_given_back() -> Result<()> {
    let config = Config { memory: true, ..Config::default() };
    for numel in [3_i64, 100_000] {
        let x = TensorSpec::of(&[numel], DType::F64).zeros()?;
        let bytes = numel * 8;
        let mut kept = None;
        let recorded = profiled(config, || {
            let y = x.exp()?;
            kept = Some(y.sin()?);
            // A view takes none.
            y.detach().map(drop)
        })?;
        let of = |name| {
            let at = only(&recorded, name);
            let own = recorded.memory().iter().filter(|taken| taken.event() == Some(at));
            own.map(|taken| taken.bytes).collect::<Vec<_>>()
        };
        assert_eq!(of("aten::exp"), [bytes]);
        assert_eq!(of("aten::sin"), [bytes]);
        let outside: Vec<i64> = recorded
            .memory()
            .iter()
            .filter(|taken| taken.event().is_none())
            .map(|taken| taken.bytes)
            .collect();
        assert_eq!(outside, [-bytes]);
        assert!(recorded.memory().windows(2).all(|pair| pair[0].time <= pair[1].time));
    }
    let x = TensorSpec::of(&[3], DType::F64).zeros()?;
    let without = profiled(Config::default(), || x.exp().map(drop))?;
    assert!(without.memory().is_empty());
    Ok(())
}

fn the_line_of_the_call(x: &Tensor) -> Result<Tensor> {
    x.exp()
}

#[test]
fn the_line_of_a_call_is_kept_on_demand() -> Result<()> {
    let x = leaf(&[1.0])?;
    let recorded = profiled(Config { stacks: true, ..Config::default() }, || {
        let _range = prof::record_function("range");
        the_line_of_the_call(&x)?.sum()?.backward()
    })?;
    let line = |name| {
        let stack = recorded.events()[only(&recorded, name)].stack();
        stack.first().and_then(|call_site| call_site.source_line()).and_then(|line| line.text)
    };
    assert_eq!(line("aten::exp").unwrap().trim(), "x.exp()");
    assert!(line("range").unwrap().contains("record_function"));
    assert_eq!(line("ExpBackward0"), None);
    Ok(())
}

struct Twice;
impl Function for Twice {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![(&inputs[0] * 2.0).get()?])
    }
    fn backward(&self, _: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![grads[0].as_ref().map(|grad| (grad * 2.0).get()).transpose()?])
    }
}

#[test]
fn custom_functions_are_ranges_with_the_number_of_their_node() -> Result<()> {
    let x = leaf(&[1.0, 2.0])?;
    let recorded = profiled(Config::default(), || apply_one(Twice, &[&x])?.sum()?.backward())?;
    let call = only(&recorded, "Twice");
    assert_eq!(recorded.events()[call].kind, RangeKind::Function);
    assert_eq!(links(&recorded)["TwiceBackward"], "Twice");
    let within = |event: &&Event| event.parent() == Some(call);
    let part = recorded.events().iter().find(within).unwrap();
    assert_eq!((part.name.to_string().as_str(), part.sequence_nr), ("aten::mul", -1));
    Ok(())
}

#[test]
fn casts_of_autocast_are_within_the_op_that_wants_them() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f32; 4], &[2, 2])?;
    let recorded = profiled(Config::default(), || {
        let _region = autocast(Device::Cpu, DType::BF16)?;
        assert_eq!(x.mm(&x)?.dtype(), DType::BF16);
        Ok(())
    })?;
    let outer = only(&recorded, "aten::mm");
    assert!(recorded.events().len() > 1, "{recorded}");
    assert!(recorded.events().iter().skip(1).all(|event| event.parent() >= Some(outer)));
    Ok(())
}

#[test]
fn an_error_ends_ranges_and_leaves_the_profile_going() -> Result<()> {
    let x = leaf(&[1.0, 2.0])?;
    let bad = leaf(&[1.0, 2.0, 3.0])?;
    let recorded = profiled(Config::default(), || {
        assert!(x.add(&bad).is_err());
        x.exp().map(drop)
    })?;
    assert_eq!(recorded.events()[only(&recorded, "aten::add")].parent(), None);
    assert_eq!(recorded.events()[only(&recorded, "aten::exp")].parent(), None);
    Ok(())
}

#[test]
fn a_thread_has_one_profile_at_a_time() -> Result<()> {
    assert!(!prof::is_profiling());
    let first = prof::profile(Config::default())?;
    assert!(prof::is_profiling());
    let error = prof::start(Config::default()).unwrap_err();
    assert!(error.to_string().contains("already enabled on this thread"), "{error}");
    drop(first);
    assert!(!prof::is_profiling());
    let error = prof::stop().unwrap_err();
    assert!(error.to_string().contains("can't disable profiler when it's not running"), "{error}");
    assert!(prof::profile(Config::default())?.finish().events().is_empty());
    Ok(())
}

#[test]
fn ranges_may_end_in_any_order_late_and_elsewhere() -> Result<()> {
    let x = leaf(&[1.0])?;
    let before = prof::record_function("before");
    let profile = prof::profile(Config::default())?;
    drop(before);
    let first = prof::record_function("first");
    let second = prof::record_function("second");
    drop(first);
    x.exp()?;
    drop(second);
    let elsewhere: Open = prof::record_function("elsewhere");
    thread::spawn(move || drop(elsewhere)).join().unwrap();
    let late = prof::record_function("late");
    let recorded = profile.finish();
    drop(late);
    let event = |name| &recorded.events()[only(&recorded, name)];
    let names: Vec<String> = recorded.events().iter().map(|e| e.name.to_string()).collect();
    assert_eq!(names, ["first", "second", "aten::exp", "elsewhere", "late"]);
    assert_eq!(name_of(&recorded, event("aten::exp").parent()), "second");
    assert!(event("elsewhere").is_async && !event("second").is_async);
    assert!(event("elsewhere").end >= event("elsewhere").start);
    assert_eq!(event("late").end, recorded.duration());
    Ok(())
}

/// Notes down what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);
impl RangeObserver for Notes {
    fn begin(&self, range: &Range<'_>) -> u64 {
        let mut notes = self.0.lock().unwrap();
        notes.push(format!("{} of {}", range.name, range.inputs.len()));
        notes.len() as u64
    }
    fn end(&self, token: u64) {
        self.0.lock().unwrap().push(format!("end of {token}"));
    }
}

#[test]
fn observers_are_told_beside_the_profile_and_until_they_are_gone() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f64], &[1])?;
    let notes = Arc::new(Notes::default());
    let observing = prof::observe(notes.clone());
    let recorded = profiled(Config::default(), || x.exp().map(drop))?;
    x.sin()?;
    drop(observing);
    x.cos()?;
    assert!(!prof::is_observed());
    assert_eq!(recorded.events().len(), 1);
    let told = notes.0.lock().unwrap().clone();
    assert_eq!(told, ["aten::exp of 1", "end of 1", "aten::sin of 1", "end of 3"]);
    Ok(())
}

#[test]
fn second_derivatives_have_numbers_of_the_thread_that_runs_backward() -> Result<()> {
    let x = leaf(&[2.0])?;
    let recorded = profiled(Config::default(), || {
        let y = x.exp()?;
        let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
        let slope = grad(&[&y], &[&x], &[None], options)?.remove(0).unwrap();
        slope.backward()
    })?;
    // `exp`'s gradient is a product, whose node is linked to the op within `ExpBackward0`.
    let (op, _) = recorded
        .links()
        .into_iter()
        .find(|&(_, node)| name_of(&recorded, Some(node)) == "MulBackward0")
        .unwrap();
    assert_eq!(name_of(&recorded, Some(op)), "aten::mul");
    assert_eq!(name_of(&recorded, recorded.events()[op].parent()), "ExpBackward0");
    Ok(())
}

/// Reads JSON, and counts its objects; an error says where it is none.
struct Json<'a> {
    text: &'a [u8],
    at: usize,
    objects: usize,
    strings: Vec<String>,
}

impl Json<'_> {
    fn skip(&mut self) -> u8 {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }
    fn expect(&mut self, byte: u8) {
        let found = self.skip();
        let near = String::from_utf8_lossy(&self.text[self.at.saturating_sub(60)..self.at]);
        assert_eq!(char::from(found), char::from(byte), "behind {near}");
        self.at += 1;
    }
    fn string(&mut self) {
        self.expect(b'"');
        let start = self.at;
        while self.text[self.at] != b'"' {
            assert!(self.text[self.at] >= 32, "a control character in a string");
            self.at += if self.text[self.at] == b'\\' { 2 } else { 1 };
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap();
        self.strings.push(text.to_owned());
        self.at += 1;
    }
    fn items(&mut self, end: u8, item: fn(&mut Self)) {
        self.at += 1;
        if self.skip() != end {
            item(self);
            while self.skip() == b',' {
                self.at += 1;
                item(self);
            }
        }
        self.expect(end);
    }
    fn value(&mut self) {
        match self.skip() {
            b'{' => {
                self.objects += 1;
                self.items(b'}', |json| {
                    json.string();
                    json.expect(b':');
                    json.value();
                });
            }
            b'[' => self.items(b']', Json::value),
            b'"' => self.string(),
            _ => {
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
                let length = self.text[self.at..].iter().take_while(|b| is_part(b)).count();
                let word = std::str::from_utf8(&self.text[self.at..self.at + length]).unwrap();
                let is_word = matches!(word, "true" | "false" | "null");
                assert!(is_word || word.parse::<f64>().is_ok_and(f64::is_finite), "{word:?}");
                self.at += length;
            }
        }
    }
    fn read(text: &str) -> Json<'_> {
        let mut json = Json { text: text.as_bytes(), at: 0, objects: 0, strings: Vec::new() };
        json.value();
        assert_eq!(json.skip(), 0, "something behind the end");
        json
    }
}

#[test]
fn traces_are_json_with_all_that_was_recorded() -> Result<()> {
    let x = leaf(&[1.0, f64::INFINITY])?;
    let config = Config { inputs: true, memory: true, stacks: true, flops: true };
    let recorded = profiled(config, || {
        let _range = prof::record_function("a \"quoted\"\\ name\nwith lines \u{1F600}");
        let y = (&x * f64::NAN).get()?.exp()?;
        joined(&y)?.sum()?.backward()
    })?;
    let mut out = Vec::new();
    let more = BTreeMap::from([("mine".to_owned(), "{\"a\": [1, 2]}".to_owned())]);
    recorded.write_trace_with(&mut out, &more).unwrap();
    let text = String::from_utf8(out).unwrap();
    let json = Json::read(&text);
    assert!(json.objects > recorded.events().len() * 2 + recorded.memory().len());
    let count = |what: &str| json.strings.iter().filter(|s| *s == what).count();
    assert_eq!(count("X"), recorded.events().len());
    assert_eq!(count("[memory]"), recorded.memory().len());
    // (Both ends of a flow say so twice.)
    assert_eq!(count("fwdbwd"), 4 * recorded.links().len());
    assert!(!recorded.links().is_empty());
    assert_eq!(count("Input Dims"), recorded.events().len());
    assert!(count("Call stack") > 0);
    assert!(count("mine") == 1 && count("user_annotation") == 1);
    assert_eq!(count("a \\\"quoted\\\"\\\\ name\\u000awith lines \u{1F600}"), 1);
    Json::read(
        &String::from_utf8({
            let mut empty = Vec::new();
            Recorded::default().write_trace(&mut empty).unwrap();
            empty
        })
        .unwrap(),
    );
    Ok(())
}

#[test]
fn many_events_are_kept_in_order() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f64], &[1])?;
    let recorded = profiled(Config::default(), || {
        for at in 0..3000 {
            let _range = prof::record_function(&at.to_string());
            x.exp()?;
        }
        Ok(())
    })?;
    assert_eq!(recorded.events().len(), 6000);
    for (at, pair) in recorded.events().chunks(2).enumerate() {
        assert_eq!(pair[0].name.to_string(), at.to_string());
        assert_eq!(pair[1].parent(), Some(2 * at));
    }
    Ok(())
}

/// The sample with its tensors on the device that has no memory.
fn without_memory(values: &[Value]) -> Result<Vec<Value>> {
    let on_meta = |value: &Value| match value {
        Value::Tensor(tensor) => {
            Ok(Value::Tensor(tensor.to(None, Some(Device::Meta), false, None)?))
        }
        other => Ok(other.clone()),
    };
    values.iter().map(on_meta).collect()
}

#[test]
fn operations_are_counted_by_shapes_alone() -> Result<()> {
    let mut counted = 0;
    for def in ops::registry().filter(|def| def.flops.is_some()) {
        for sample in
            def.samples.map(|samples| samples(&Sampler::new(DType::F64))).into_iter().flatten()
        {
            let values = sample.values(def)?;
            let count = |values: &[Value]| {
                let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
                def.count_flops(&args)
            };
            let count_of_values = count(&values);
            assert!(count_of_values.is_some(), "{} with {sample:?}", def.full_name());
            assert_eq!(count(&without_memory(&values)?), count_of_values, "{}", def.full_name());
            counted += 1;
        }
    }
    assert!(counted > 30, "only {counted} calls were counted");
    Ok(())
}

#[test]
fn counts_of_operations_are_noted_down_where_they_are_asked_for() -> Result<()> {
    let a = Tensor::from_slice(&[1.0_f64; 6], &[2, 3])?;
    let image = Tensor::from_slice(&[1.0_f64; 18], &[1, 2, 3, 3])?;
    let filters = Tensor::from_slice(&[1.0_f64; 24], &[3, 2, 2, 2])?;
    let run = || {
        a.mm(&a.t()?)?;
        a.mul(&a)?;
        a.exp()?;
        image.conv2d(&filters, None, &[1], &[0], &[1], 1).map(drop)
    };
    let config = Config { flops: true, ..Config::default() };
    let recorded = profiled(config, run)?;
    let flops = |name| recorded.events()[only(&recorded, name)].flops();
    assert_eq!(flops("aten::mm"), 2 * 2 * 3 * 2);
    assert_eq!(flops("aten::mul"), 6);
    assert_eq!(flops("aten::exp"), 0);
    // (At four places each of three filters of eight numbers; the op that it is made of is not counted again.)
    assert_eq!(flops("aten::conv2d"), 2 * 4 * 24);
    assert_eq!(flops("aten::convolution"), 0);
    let without = profiled(Config::default(), run)?;
    assert!(without.events().iter().all(|event| event.flops() == 0));
    Ok(())
}
