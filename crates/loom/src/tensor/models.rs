//! The lock of one byte, and the flip of ownership between a tensor's record and its Python wrapper.

use super::{Counts, SpinLock};
use loom::sync::Arc;
use loom::thread::spawn;

#[test]
fn a_spin_lock_lets_one_in_at_a_time() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let other = lock.clone();
        let thread = spawn(move || {
            other.with(|value| *value += 1);
            other.with(|value| *value += 1);
        });
        lock.with(|value| *value += 1);
        thread.join().unwrap();
        assert_eq!(lock.with(|value| *value), 3);
    });
}

#[test]
fn a_panic_under_a_spin_lock_opens_it() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let other = lock.clone();
        let thread = spawn(move || {
            let fails = || other.with(|_| panic!("on purpose"));
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err()
        });
        lock.with(|value| *value += 1);
        assert!(thread.join().unwrap());
        assert_eq!(lock.with(|value| *value), 1);
    });
}

#[test]
fn one_of_two_who_let_go_is_the_last() {
    loom::model(|| {
        let counts = Arc::new(Counts::new());
        counts.add_strong();
        let other = counts.clone();
        let thread = spawn(move || other.drop_strong());
        let was_last = counts.drop_strong();
        assert!(was_last ^ thread.join().unwrap());
        assert!(counts.drop_weak(), "the strong handles' weak one is the last of all");
    });
}
