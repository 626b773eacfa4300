//! The ways in which kernels compute. Where a kernel chooses among algorithms, a function of shapes, dtypes and the instruction
//! set returns a named plan, and the kernel announces the plan that it follows.
//!
//! Tests collect what is announced ([`watched`]); the dispatcher prints it behind the line of the
//! call, where the environment variable `PULLBACK_TRACE_DISPATCH` asks for that
//! ([`print_from_now`]). Where neither is active, an announcement costs the load of a counter. Only
//! choices of the calling thread are announced, each once if it is repeated at once; choices of the
//! pool's threads for their parts of the work are not.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many threads collect or print.
static WATCHERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What is done with the plans that this thread announces.
    static WATCHER: RefCell<Watcher> = const { RefCell::new(Watcher::Nobody) };
}

/// A plan that was announced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announced {
    /// What is computed: `convolution`.
    pub computation: &'static str,
    /// The name of the plan: `Winograd`.
    pub plan: String,
}

/// What is done with announced plans.
enum Watcher {
    Nobody,
    /// They are collected.
    List(Vec<Announced>),
    /// They are printed; the field is the last one.
    Printer(fn(&Announced), Option<Announced>),
}

/// Announces the plan that `computation` follows.
#[inline(always)]
pub fn announce(computation: &'static str, plan: &dyn Debug) {
    if WATCHERS.load(Relaxed) != 0 {
        tell(computation, plan);
    }
}

#[cold]
#[inline(never)]
fn tell(computation: &'static str, plan: &dyn Debug) {
    WATCHER.with_borrow_mut(|watcher| {
        if matches!(watcher, Watcher::Nobody) {
            return;
        }
        let new = Announced { computation, plan: format!("{plan:?}") }; // tidy: short
        match watcher {
            Watcher::List(list) if list.last() != Some(&new) => list.push(new), // tidy: short
            Watcher::Printer(print, last) if last.as_ref() != Some(&new) => {
                print(&new);
                *last = Some(new);
            }
            _ => {}
        }
    });
}

/// Returns the result of `run`, and the plans that this thread announces meanwhile.
pub fn watched<R>(run: impl FnOnce() -> R) -> (R, Vec<Announced>) {
    /// Puts the thread's watcher back, also if `run` panics.
    struct Restored(Watcher);
    impl Drop for Restored {
        fn drop(&mut self) {
            WATCHERS.fetch_sub(1, Relaxed);
            WATCHER.replace(std::mem::replace(&mut self.0, Watcher::Nobody));
        }
    }
    WATCHERS.fetch_add(1, Relaxed);
    let _restored = Restored(WATCHER.replace(Watcher::List(Vec::new())));
    let result = run();
    let list = WATCHER.with_borrow_mut(|watcher| match watcher {
        Watcher::List(list) => std::mem::take(list),
        _ => Vec::new(),
    });
    (result, list)
}

/// Prints the plans that this thread announces from now on by `print`, the first one whatever was the last.
pub fn print_from_now(print: fn(&Announced)) {
    WATCHER.with_borrow_mut(|watcher| match watcher {
        Watcher::List(_) => {}
        Watcher::Printer(_, last) => *last = None,
        Watcher::Nobody => {
            WATCHERS.fetch_add(1, Relaxed);
            *watcher = Watcher::Printer(print, None);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Way {
        Short,
        Long,
    }

    fn of(list: &[Announced]) -> Vec<&str> {
        list.iter().map(|announced| announced.plan.as_str()).collect()
    }

    #[test]
    fn a_thread_collects_its_own_plans_and_each_repetition_once() {
        let ((), list) = watched(|| {
            for way in [Way::Short, Way::Short, Way::Long, Way::Short] {
                announce("a test", &way);
            }
            std::thread::spawn(|| announce("a test", &Way::Long)).join().unwrap();
        });
        assert_eq!(of(&list), ["Short", "Long", "Short"]);
        assert!(list.iter().all(|announced| announced.computation == "a test"));
        announce("a test", &Way::Long);
        assert_eq!(watched(|| ()).1, []);
    }

    #[test]
    fn a_watch_inside_of_another_and_one_that_panics_leave_the_outer_one_alone() {
        let ((), list) = watched(|| {
            announce("outside", &Way::Short);
            let ((), inner) = watched(|| announce("inside", &Way::Long));
            assert_eq!(of(&inner), ["Long"]);
            let caught = std::panic::catch_unwind(|| watched(|| panic!("of this test")));
            assert!(caught.is_err());
            announce("outside", &Way::Long);
        });
        assert_eq!(of(&list), ["Short", "Long"]);
    }
}
