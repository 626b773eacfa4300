//! A profile as a trace that `chrome://tracing` and Perfetto show: the Trace Event Format, as one JSON object.
//!
//! Events are complete events (`X`) with what was recorded of them, memory is instants (`i`), and each node is tied to the op
//! that made it by a flow (`s` and `f`). Times are microseconds, with the nanoseconds behind the point.

use super::record::RangeKind;
use super::recorded::{Event, MemoryEvent, Recorded, RecordedInput};
use crate::Scalar;
use crate::call_site::CallSite;
use crate::dispatch::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::UNIX_EPOCH;

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 32 || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Nanoseconds as microseconds.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A JSON list of items that are JSON already.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A list of one property of an event's inputs.
fn each(inputs: &[RecordedInput], show: fn(&RecordedInput) -> String) -> String {
    list(inputs.iter().map(show))
}

fn dims(input: &RecordedInput) -> String {
    match input {
        RecordedInput::Tensor { shape, .. } => list(shape.iter().map(i64::to_string)),
        RecordedInput::List(items) => each(items, dims),
        RecordedInput::Value(_) => "[]".to_owned(),
    }
}

fn strides(input: &RecordedInput) -> String {
    match input {
        RecordedInput::Tensor { strides, .. } => list(strides.iter().map(i64::to_string)),
        RecordedInput::List(items) => each(items, self::strides),
        RecordedInput::Value(_) => "[]".to_owned(),
    }
}

fn type_of(input: &RecordedInput) -> String {
    quoted(match input {
        RecordedInput::Tensor { dtype, .. } => dtype.name(),
        RecordedInput::List(_) => "TensorList",
        RecordedInput::Value(Value::None) => "",
        RecordedInput::Value(Value::Ints(_) | Value::Floats(_) | Value::Scalars(_)) => "ScalarList",
        RecordedInput::Value(_) => "Scalar",
    })
}

fn value(input: &RecordedInput) -> String {
    quoted(&match input {
        RecordedInput::Value(value) => in_words(value),
        RecordedInput::Tensor { .. } | RecordedInput::List(_) => String::new(),
    })
}

/// A value of an argument, as Python would print it.
fn in_words(value: &Value) -> String {
    match value {
        Value::Bool(b) | Value::Scalar(Scalar::Bool(b)) => if *b { "True" } else { "False" }.into(),
        Value::Int(i) | Value::Scalar(Scalar::Int(i)) => i.to_string(),
        Value::Scalar(Scalar::UInt(u)) => u.to_string(),
        Value::Float(x) | Value::Scalar(Scalar::Float(x)) => format!("{x:?}"),
        Value::Scalar(Scalar::Complex(re, im)) => format!("{re:?}{im:+?}j"),
        Value::Ints(all) => format!("{all:?}"),
        Value::Floats(all) => format!("{all:?}"),
        Value::Str(text) => text.to_string(),
        Value::DType(dtype) => dtype.name().to_owned(),
        _ => String::new(),
    }
}

/// Writes what was recorded in the format of Chrome's trace viewer.
struct TraceWriter<'a> {
    recorded: &'a Recorded,
    process: u32,
    /// The texts of the program's lines, which are looked up once.
    lines: HashMap<CallSite, String>,
    /// For each event: its number among the functions and modules of the program, from 1 on, and
    /// that of the innermost one around it; 0 for none.
    functions: Vec<(usize, usize)>,
}

/// The numbers of the program's functions, see [`TraceWriter::functions`]. (Events come after those that they are within.)
fn number_functions(events: &[Event]) -> Vec<(usize, usize)> {
    let mut numbers: Vec<(usize, usize)> = Vec::with_capacity(events.len());
    let mut count = 0;
    for event in events {
        let outer = event.parent().and_then(|parent| numbers.get(parent).copied());
        let around = match outer.unwrap_or_default() {
            (0, around) => around,
            (number, _) => number,
        };
        let is_function = matches!(event.kind, RangeKind::Module | RangeKind::Program);
        count += usize::from(is_function);
        numbers.push((if is_function { count } else { 0 }, around));
    }
    numbers
}

impl TraceWriter<'_> {
    fn line(&mut self, call_site: CallSite) -> &str {
        let line = || {
            call_site.source_line().map_or_else(String::new, |line| {
                let function = line.function.unwrap_or_default();
                format!("{}({}): {function}", line.file, line.line)
            })
        };
        self.lines.entry(call_site).or_insert_with(line)
    }

    /// The data of an event besides its times.
    fn args(&mut self, at: usize, event: &Event) -> String {
        let mut args = format!("\"External id\":{},\"Ev Idx\":{at}", at + 1);
        let (number, around) = self.functions[at];
        if number > 0 {
            let _ = write!(args, ",\"Python id\":{number}");
            if around > 0 {
                let _ = write!(args, ",\"Python parent id\":{around}");
            }
        }
        if event.kind == RangeKind::Module {
            // (Its number among the modules of its class ends its name.)
            let name = event.name.to_string();
            let nr = name.rsplit_once('_').and_then(|(_, nr)| nr.parse().ok()).unwrap_or(0_u64);
            let _ = write!(args, ",\"Python module id\":{nr}");
        }
        if event.sequence_nr >= 0 {
            let (thread, nr) = (event.forward_thread, event.sequence_nr);
            let _ = write!(args, ",\"Sequence number\":{nr},\"Fwd thread id\":{thread}");
        }
        if !event.name.overload().is_empty() {
            let _ = write!(args, ",\"Overload Name\":{}", quoted(event.name.overload()));
        }
        if let Some(inputs) = event.inputs() {
            let shown = (each(inputs, dims), each(inputs, strides));
            let _ = write!(args, ",\"Input Dims\":{},\"Input Strides\":{}", shown.0, shown.1);
            let shown = (each(inputs, type_of), each(inputs, value));
            let _ = write!(args, ",\"Input type\":{},\"Concrete Inputs\":{}", shown.0, shown.1);
        }
        if !event.stack().is_empty() {
            // (PyTorch's form: one text, outermost first.)
            let lines: Vec<String> = event
                .stack()
                .iter()
                .rev()
                .map(|&call_site| self.line(call_site).to_owned())
                .collect();
            let _ = write!(args, ",\"Call stack\":{}", quoted(&lines.join(";")));
        }
        args
    }

    fn event(&mut self, at: usize, event: &Event) -> String {
        let category = match event.kind {
            RangeKind::User => "user_annotation",
            RangeKind::Module | RangeKind::Program => "python_function",
            _ => "cpu_op",
        };
        let args = self.args(at, event);
        format!(
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{args}}}}}",
            quoted(&event.name.to_string()),
            self.process,
            event.thread,
            micros(event.start),
            micros(event.duration())
        )
    }

    fn memory(&self, taken: &MemoryEvent, total: i64) -> String {
        format!(
            "{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":{},\"tid\":{},\"ts\":{},\"args\":{{\"Addr\":{},\"Bytes\":{},\"Total Allocated\":{total},\"Device Type\":0,\"Device Id\":-1}}}}",
            self.process,
            taken.thread,
            micros(taken.time),
            taken.address,
            taken.bytes
        )
    }

    /// The two ends of a flow from an op to the node that it made.
    fn link(&self, number: usize, (op, node): (usize, usize)) -> [String; 2] {
        let end = |phase: &str, event: &Event, more: &str| {
            format!(
                "{{\"ph\":\"{phase}\",\"id\":{},\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"pid\":{},\"tid\":{},\"ts\":{}{more}}}",
                number + 1,
                self.process,
                event.thread,
                micros(event.start)
            )
        };
        let events = self.recorded.events();
        [end("s", &events[op], ""), end("f", &events[node], ",\"bp\":\"e\"")]
    }

    fn thread_names(&self) -> Vec<String> {
        let threads: std::collections::BTreeSet<u32> =
            self.recorded.events().iter().map(|event| event.thread).collect();
        let name = |thread| {
            format!(
                "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{thread},\"args\":{{\"name\":\"thread {thread}\"}}}}",
                self.process
            )
        };
        threads.into_iter().map(name).collect()
    }
}

impl Recorded {
    /// Writes a trace for `chrome://tracing` or Perfetto.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_trace_with(out, &BTreeMap::new())
    }

    /// The trace with further members, each of them JSON, in the outer object.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_trace_with(
        &self,
        out: &mut dyn Write,
        metadata: &BTreeMap<String, String>,
    ) -> io::Result<()> {
        let base = self.started.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let process = std::process::id();
        let mut writer = TraceWriter {
            recorded: self,
            process,
            lines: HashMap::new(),
            functions: number_functions(self.events()),
        };
        // (As numbers, times since 1970 would lose their nanoseconds.)
        write!(
            out,
            "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":{base},"
        )?;
        for (key, value) in metadata {
            write!(out, "{}:{value},", quoted(key))?;
        }
        write!(
            out,
            "\"traceEvents\":[\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"args\":{{\"name\":\"pullback\"}}}}"
        )?;
        for line in writer.thread_names() {
            write!(out, ",\n{line}")?;
        }
        for (at, event) in self.events().iter().enumerate() {
            write!(out, ",\n{}", writer.event(at, event))?;
        }
        let mut total = 0;
        for taken in self.memory() {
            total += taken.bytes;
            write!(out, ",\n{}", writer.memory(taken, total))?;
        }
        for (number, link) in self.links().into_iter().enumerate() {
            let [start, finish] = writer.link(number, link);
            write!(out, ",\n{start},\n{finish}")?;
        }
        write!(out, "\n]}}\n")
    }
}
