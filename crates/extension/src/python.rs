//! The library as a module of Python: what `import` gets, where it finds the library under its own name (`mymath.so`).
//!
//! The library is built without Python, for all of its versions: the few functions that are needed are looked up in the process
//! that imports it, and the types are those of Python's stable ABI. What the module is made of is said in Python
//! (`pullback/_extension_ops.py`).

use crate::Table;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

type Object = *mut c_void;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// What `dlsym` takes for "all that the process has loaded".
#[cfg(target_vendor = "apple")]
const EVERYWHERE: *mut c_void = std::ptr::without_provenance_mut(-2_isize as usize);
#[cfg(not(target_vendor = "apple"))]
const EVERYWHERE: *mut c_void = null_mut();

/// The function of the slot that makes a module.
type Create = extern "C" fn(Object, *mut c_void) -> Object;

/// `PyModuleDef_Slot`.
#[repr(C)]
struct Slot {
    number: c_int,
    create: Option<Create>,
}

/// `Py_mod_create`: the number of that slot.
const CREATE: c_int = 1;

/// The slots, of which the last one is empty.
static SLOTS: [Slot; 2] =
    [Slot { number: CREATE, create: Some(create) }, Slot { number: 0, create: None }];

/// `PyModuleDef`, the head of an object included.
#[repr(C)]
struct Definition {
    count: isize,
    class: *mut c_void,
    init: *mut c_void,
    index: isize,
    copy: Object,
    name: *const c_char,
    doc: *const c_char,
    size: isize,
    methods: *mut c_void,
    slots: *const Slot,
    traverse: *mut c_void,
    clear: *mut c_void,
    free: *mut c_void,
}

/// The definition, which Python writes to.
struct Own(UnsafeCell<Definition>);

// SAFETY: Python alone looks at it, under its lock.
unsafe impl Sync for Own {}

static OWN: Own = Own(UnsafeCell::new(Definition {
    count: 1,
    class: null_mut(),
    init: null_mut(),
    index: 0,
    copy: null_mut(),
    name: c"pullback_extension".as_ptr(),
    doc: null(),
    size: 0,
    methods: null_mut(),
    slots: SLOTS.as_ptr(),
    traverse: null_mut(),
    clear: null_mut(),
    free: null_mut(),
}));

/// The table of this library: each has its own copy of this crate.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());

/// What the function by which Python initializes a module returns; null in a process that is no Python, and with an exception
/// where the heads of objects are not those of the definition here: in free-threaded builds, which alone export `PyUnstable_Module_SetGIL`.
pub fn definition(table: &'static Table) -> *mut c_void {
    TABLE.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
    if found(c"PyUnstable_Module_SetGIL").is_some() {
        refuse(c"a free-threaded Python cannot import this library: use torch.ops.load_library");
        return null_mut();
    }
    let Some(ready) = found(c"PyModuleDef_Init") else { return null_mut() };
    // SAFETY: the function of this name has this type.
    let ready = unsafe { std::mem::transmute::<*mut c_void, Ready>(ready) };
    ready(OWN.0.get())
}

fn found(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text that ends with a zero.
    let address = unsafe { dlsym(EVERYWHERE, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Sets an `ImportError`.
fn refuse(message: &CStr) {
    let (class, set) = (found(c"PyExc_ImportError"), found(c"PyErr_SetString"));
    let (Some(class), Some(set)) = (class, set) else { return };
    // SAFETY: the variable and the function of these names have these types.
    unsafe {
        let set = std::mem::transmute::<*mut c_void, SetError>(set);
        set(*class.cast::<Object>(), message.as_ptr());
    }
}

type SetError = extern "C" fn(Object, *const c_char);
type Ready = extern "C" fn(*mut Definition) -> Object;
type Import = extern "C" fn(*const c_char) -> Object;
type CallMethod = unsafe extern "C" fn(Object, *const c_char, *const c_char, ...) -> Object;
type Release = extern "C" fn(Object);

/// Makes the module; null with an exception set if that fails.
extern "C" fn create(_spec: Object, _definition: *mut c_void) -> Object {
    made().unwrap_or(null_mut())
}

fn made() -> Option<Object> {
    let import = found(c"PyImport_ImportModule")?;
    let call = found(c"PyObject_CallMethod")?;
    let release = found(c"Py_DecRef")?;
    let address = TABLE.load(Ordering::Acquire) as usize;
    // SAFETY: the functions of these names have these types, and who makes a module holds the interpreter's lock.
    unsafe {
        let import = std::mem::transmute::<*mut c_void, Import>(import);
        let call = std::mem::transmute::<*mut c_void, CallMethod>(call);
        let release = std::mem::transmute::<*mut c_void, Release>(release);
        let package = import(c"pullback._extension_ops".as_ptr());
        if package.is_null() {
            return None;
        }
        let module = call(package, c"module".as_ptr(), c"K".as_ptr(), address as u64);
        release(package);
        Some(module)
    }
}
