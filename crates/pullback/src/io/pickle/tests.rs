//! Pickles: every protocol, and bytes that are wrong.

use super::{Broken, Build, Constant, FaultKind, Limits, globals, resolve_names, run};

/// Shows objects as text, of a bounded size.
struct Shown;

#[derive(Clone, Debug, PartialEq)]
struct Text(std::rc::Rc<std::cell::RefCell<String>>);

fn shown(text: impl Into<String>) -> Text {
    Text(std::rc::Rc::new(std::cell::RefCell::new(text.into())))
}
fn joined(items: &[Text]) -> String {
    let all: Vec<String> = items.iter().map(|item| item.0.borrow().clone()).collect();
    let text = all.join(", ");
    text.chars().take(200).collect()
}

impl Build for Shown {
    type Object = Text;
    type Error = Broken;
    fn constant(&mut self, constant: Constant<'_>) -> Result<Text, Broken> {
        Ok(shown(match constant {
            Constant::None => "None".to_owned(),
            Constant::Bool(value) => value.to_string(),
            Constant::Int(value) => value.to_string(),
            Constant::BigInt(bytes) => format!("big{bytes:?}"),
            Constant::Float(value) => format!("{value:?}"),
            Constant::Text(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Constant::Bytes(bytes) | Constant::ByteArray(bytes) => format!("b{bytes:?}"),
            Constant::OldString(bytes) => format!("s{bytes:?}"),
        }))
    }
    fn tuple(&mut self, items: Vec<Text>) -> Result<Text, Broken> {
        Ok(shown(format!("({})", joined(&items))))
    }
    fn list(&mut self, items: Vec<Text>) -> Result<Text, Broken> {
        Ok(shown(format!("[{}]", joined(&items))))
    }
    fn dict(&mut self) -> Result<Text, Broken> {
        Ok(shown("{}"))
    }
    fn set(&mut self, items: Vec<Text>, is_frozen: bool) -> Result<Text, Broken> {
        Ok(shown(format!("{}<{}>", if is_frozen { "frozen" } else { "" }, joined(&items))))
    }
    fn append(&mut self, list: &Text, items: Vec<Text>) -> Result<(), Broken> {
        // (Before the list is borrowed: it may be among the items.)
        let more = joined(&items);
        let mut text = list.0.borrow_mut();
        text.push('+');
        text.push_str(&more);
        Ok(())
    }
    fn set_items(&mut self, dict: &Text, items: Vec<Text>) -> Result<(), Broken> {
        self.append(dict, items)
    }
    fn add(&mut self, set: &Text, items: Vec<Text>) -> Result<(), Broken> {
        self.append(set, items)
    }
    fn global(&mut self, module: &str, name: &str) -> Result<Text, Broken> {
        Ok(shown(format!("{module}.{name}")))
    }
    fn text(&self, object: &Text) -> Option<String> {
        Some(object.0.borrow().clone())
    }
    fn reduce(&mut self, callable: Text, arguments: Text) -> Result<Text, Broken> {
        Ok(shown(format!("{}{}", joined(&[callable]), joined(&[arguments]))))
    }
    fn new_object(&mut self, class: Text, args: Text, _: Option<Text>) -> Result<Text, Broken> {
        self.reduce(class, args)
    }
    fn build(&mut self, instance: &Text, state: Text) -> Result<(), Broken> {
        self.append(instance, vec![state])
    }
    fn persistent(&mut self, id: Text) -> Result<Text, Broken> {
        Ok(shown(format!("#{}", joined(&[id]))))
    }
    fn protocol(&mut self, _: u8) -> Result<(), Broken> {
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Result<String, Broken> {
    run(bytes, 0, Limits::default(), &mut Shown).map(|(object, _)| object.0.borrow().clone())
}

#[test]
fn every_protocol_of_python_is_read() {
    // `pickle.dumps((1, -2, 300, 70000, 2**70, 1.5, "ä", b"\x00", [True, None], {"k": {2}}), protocol)`
    let cases: [&[u8]; 2] = [
        b"\x80\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa4q\x00](\x88Nee}X\x01\x00\x00\x00kK\x02sut.",
        b"(I1\nI-2\nL300L\nI70000\nL1180591620717411303424L\nF1.5\nV\\xe4\n(lp0\nI01\naN(dt.",
    ];
    assert!(read(cases[0]).is_err(), "a key without a value");
    let old = read(cases[1]).unwrap();
    assert!(
        old.starts_with("(1, -2, 300, 70000, big[0, 0, 0, 0, 0, 0, 0, 0, 64, 0], 1.5, "),
        "{old}"
    );
    assert!(old.contains("\\xe4") && old.contains("[]+true"), "{old}");
    let new = b"\x80\x05\x95\x10\x00\x00\x00\x00\x00\x00\x00(\x8c\x01a\x94C\x02bc\x8f\x94(K\x01\x90\x8c\x01m\x8c\x01n\x93\x96\x01\x00\x00\x00\x00\x00\x00\x00zh\x00t.";
    assert_eq!(read(new).unwrap(), "(a, b[98, 99], <>+1, m.n, b[122], a)");
}

#[test]
fn integers_are_read_from_bytes_and_digits() {
    assert_eq!(read(b"\x8a\x00.").unwrap(), "0");
    assert_eq!(read(b"\x8a\x01\xff.").unwrap(), "-1");
    assert_eq!(read(b"\x8a\x02\x00\x80.").unwrap(), "-32768");
    assert_eq!(
        read(b"L-18446744073709551616L\n.").unwrap(),
        "big[0, 0, 0, 0, 0, 0, 0, 0, 255, 255]"
    );
    assert_eq!(read(b"I00\n.").unwrap(), "false");
    assert!(read(b"I1x\n.").is_err());
    assert!(read(format!("L{}L\n.", "9".repeat(5000)).as_bytes()).is_err());
}

#[test]
fn old_strings_have_escapes() {
    assert_eq!(read(b"S'a\\n\\x41\\101\\\\'\n.").unwrap(), "s[97, 10, 65, 65, 92]");
    assert_eq!(read(b"V\\u00e4\\ud800\n.").unwrap(), "\u{e4}\u{fffd}\u{fffd}\u{fffd}");
    for broken in [&b"S'a\n."[..], b"Sa\n.", b"S'\\x4'\n.", b"V\\u12\n.", b"V\\Uffffffff\n."] {
        assert_eq!(read(broken).unwrap_err().0.kind, FaultKind::Malformed);
    }
}

#[test]
fn errors_say_where_and_what() {
    let cases: [(&[u8], FaultKind, usize, &str); 9] = [
        (b"", FaultKind::EndOfInput, 0, "Ran out of input"),
        (b"N", FaultKind::EndOfInput, 1, "Ran out of input"),
        (
            b"NX\x05\x00\x00\x00ab.",
            FaultKind::Truncated,
            1,
            "5 bytes are missing or cut off, 3 are left",
        ),
        (
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
            FaultKind::Truncated,
            0,
            "pickle data was truncated",
        ),
        (b"N\xfe.", FaultKind::Malformed, 1, "Unsupported operand 254"),
        (b"\x80\x09.", FaultKind::Malformed, 0, "unsupported pickle protocol: 9"),
        (b"Nh\x07.", FaultKind::Malformed, 1, "Memo value not found at index 7"),
        (b"N.", FaultKind::Malformed, 0, ""),
        (b"t.", FaultKind::Malformed, 0, "there is no mark"),
    ];
    for (bytes, kind, position, text) in cases {
        let Err(Broken(fault)) = read(bytes) else {
            assert_eq!(bytes, b"N.");
            continue;
        };
        assert_eq!((fault.kind, fault.position), (kind, position), "{fault}");
        assert!(fault.to_string().contains(text), "{fault}");
    }
    // What is below a mark belongs to whoever set it.
    for bytes in [&b"N(a."[..], b"N(\x85.", b"]N(s.", b"(N.", b"N(R."] {
        let outcome = read(bytes);
        assert!(outcome.is_err() || bytes == b"(N.", "{bytes:?}: {outcome:?}");
    }
}

#[test]
fn tuples_cannot_be_nested_without_end() {
    let nested = |depth: usize| [&b")"[..], &vec![0x85; depth], b"."].concat();
    assert!(read(&nested(900)).is_ok());
    assert!(read(&nested(1000)).unwrap_err().0.text.contains("nested deeper than 1000"));
}

const SAMPLE: &[u8] = b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01cm\nf\nq\x02(X\x07\x00\x00\x00storageq\x03K\x01K\x02K\x03tQ\x85RX\x01\x00\x00\x00b](K\x01h\x01G?\xf8\x00\x00\x00\x00\x00\x00eu.";

#[test]
fn a_pickle_that_was_cut_off_is_an_error() {
    assert_eq!(read(SAMPLE).unwrap(), "{}+a, m.f(#(storage, 1, 2, 3)), b, []+1, a, 1.5");
    for length in 0..SAMPLE.len() {
        assert_ne!(read(&SAMPLE[..length]).unwrap_err().0.kind, FaultKind::Malformed);
        assert!(globals(&SAMPLE[..length]).is_err());
    }
}

#[test]
fn any_byte_may_be_wrong() {
    for at in 0..SAMPLE.len() {
        for value in 0..=u8::MAX {
            let mut broken = SAMPLE.to_vec();
            broken[at] = value;
            let _ = (read(&broken), globals(&broken), resolve_names(&broken, "a"));
        }
    }
}

#[test]
fn names_are_listed_without_running_anything() {
    assert_eq!(globals(SAMPLE).unwrap(), [("m".to_owned(), "f".to_owned())]);
    let stacked = b"\x80\x04\x8c\x01m\x94\x8c\x01f\x94\x93\x94h\x00\x8c\x01g\x93\x86.";
    let pair = |name: &str| ("m".to_owned(), name.to_owned());
    assert_eq!(globals(stacked).unwrap(), [pair("f"), pair("g")]);
}

#[test]
fn texts_become_names() {
    let text =
        |text: &str| [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let written = [
        &b"\x80\x02("[..],
        &text("!m\nf"),
        b"q\x00Qh\x00Q",
        &text("!other"),
        b"q\x01",
        &text("plain"),
        b"Qt.",
    ]
    .concat();
    let resolved = resolve_names(&written, "!").unwrap();
    let expected =
        [&b"\x80\x02(cm\nf\nq\x00h\x00"[..], &text("!other"), b"q\x01", &text("plain"), b"Qt."]
            .concat();
    assert_eq!(resolved, expected);
    assert_eq!(read(&resolved).unwrap(), "(m.f, m.f, !other, #plain)");
    // In protocol 4 there are frames, whose sizes would be wrong.
    let framed = [&b"\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00\x8c\x04!m\nf\x94Q."[..]].concat();
    assert_eq!(resolve_names(&framed, "!").unwrap(), b"\x80\x04cm\nf\n\x94.");
}
