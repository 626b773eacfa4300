//! Nodes' counted pointer, the accumulator's handles, the right to number nodes.

use super::counted::{Counted, Weak};
use super::numbering::Numbering;
use super::stand_in::{Tensor, node::Node};
use crate::model;
use crate::sync::{AtomicBool, UnsafeCell};
use loom::sync::Arc;
use loom::thread::spawn;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

/// A value that records its drop, and fails if it is used at the same time. Loom itself sees memory
/// that is freed twice or not at all.
struct Value {
    drops: std::sync::Arc<AtomicUsize>,
    content: UnsafeCell<u32>,
}

impl Value {
    /// The value behind a new pointer, and how often it was dropped.
    fn counted() -> (Counted<Value>, std::sync::Arc<AtomicUsize>) {
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let value = Value { drops: drops.clone(), content: UnsafeCell::new(7) };
        // SAFETY: it is moved to the place.
        (unsafe { Counted::make(|place: *mut Value| place.write(value)) }, drops)
    }
    fn read(&self) {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.content.with(|content| assert_eq!(unsafe { *content }, 7));
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: loom checks that nobody reads meanwhile.
        self.content.with_mut(|content| unsafe { *content = 0 });
        self.drops.fetch_add(1, SeqCst);
    }
}

/// The actions of a weak handle: if there is a value, it is whole.
fn look(weak: &Weak<Value>, drops: &AtomicUsize) {
    if let Some(value) = weak.upgrade() {
        assert_eq!(drops.load(SeqCst), 0, "a dropped value was handed out");
        value.read();
    }
}

#[test]
fn the_last_of_three_handles_drops_the_value() {
    loom::model(|| {
        let (value, drops) = Value::counted();
        let threads = [value.clone(), value.clone()].map(|value| spawn(move || value.read()));
        value.read();
        drop(value);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn the_last_handle_races_with_a_weak_one_that_is_upgraded() {
    loom::model(|| {
        let (value, drops) = Value::counted();
        let (weak, seen) = (value.downgrade(), drops.clone());
        let thread = spawn(move || look(&weak, &seen));
        value.read();
        drop(value);
        thread.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn a_handle_traded_for_a_weak_one_is_not_overlooked() {
    loom::model(|| {
        let (value, drops) = Value::counted();
        let (other, seen) = (value.clone(), drops.clone());
        let thread = spawn(move || {
            let weak = other.downgrade();
            drop(other);
            look(&weak, &seen);
        });
        value.read();
        drop(value);
        thread.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn a_weak_handle_traded_for_a_strong_one_is_not_overlooked() {
    loom::model(|| {
        let (value, drops) = Value::counted();
        let (weak, seen) = (value.downgrade(), drops.clone());
        let thread = spawn(move || {
            let upgraded = weak.upgrade();
            drop(weak);
            if let Some(value) = upgraded {
                assert_eq!(seen.load(SeqCst), 0);
                value.read();
            }
        });
        value.read();
        drop(value);
        thread.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn weak_handles_race_to_free_the_memory() {
    loom::model(|| {
        let (value, drops) = Value::counted();
        let (weak, seen) = (value.downgrade(), drops.clone());
        let again = weak.clone();
        let threads = [spawn(move || look(&weak, &seen)), spawn(move || drop(again))];
        drop(value);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// The actions of a handle.
fn use_node(node: &Node, leaf: &Tensor) {
    assert!(node.leaf().is_same(leaf));
    assert!(node.handles() >= 1);
    assert!(node.expected_dtype().is_some());
}

#[test]
fn the_first_handle_of_one_thread_races_with_the_last_of_another() {
    loom::model(|| {
        let x = Tensor::new();
        let other = x.clone();
        let thread = spawn(move || {
            let node = other.accumulator();
            use_node(&node, &other);
            use_node(&node.clone(), &other);
        });
        use_node(&x.accumulator(), &x);
        thread.join().unwrap();
        assert_eq!(x.use_count(), 1, "without handles the accumulator lets go of its leaf");
    });
}

#[test]
fn the_last_handle_to_an_accumulator_outlives_the_leafs() {
    loom::model(|| {
        let x = Tensor::new();
        let node = x.accumulator();
        let weak = node.downgrade();
        let thread = spawn(move || drop(x));
        let upgraded = spawn(move || weak.upgrade().map(|node| node.leaf().use_count()));
        assert!(node.leaf().use_count() >= 1);
        drop(node);
        thread.join().unwrap();
        assert!(upgraded.join().unwrap().is_none_or(|count| count >= 1));
    });
}

#[test]
fn an_accumulator_given_up_goes_with_its_last_handle() {
    loom::model(|| {
        let x = Tensor::new();
        let other = x.clone();
        let thread = spawn(move || {
            let node = other.accumulator();
            use_node(&node, &other);
        });
        x.set_dtype(1);
        drop(x.live_accumulator());
        thread.join().unwrap();
        assert_eq!(x.accumulator().expected_dtype(), Some(1));
        assert_eq!(x.use_count(), 1);
    });
}

#[test]
fn hooks_go_with_the_last_handle_or_with_the_next_first_one() {
    model(2, || {
        let x = Tensor::new();
        let held = Arc::new(());
        let (other, hook) = (x.clone(), held.clone());
        let thread = spawn(move || other.accumulator().add_hook(Box::new(hook)));
        drop(x.accumulator());
        thread.join().unwrap();
        drop(x.accumulator());
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

#[test]
fn one_task_at_a_time_numbers_nodes() {
    loom::model(|| {
        // The nodes' fields: two threads that write them at once are a race that loom sees.
        let shared = Arc::new((AtomicBool::new(false), UnsafeCell::new(0)));
        let number = |shared: &(AtomicBool, UnsafeCell<u32>)| {
            let right = Numbering::take(&shared.0);
            if right.is_some() {
                // SAFETY: loom checks that nobody else uses it.
                shared.1.with_mut(|places| unsafe { *places += 1 });
            }
            right.is_some()
        };
        let threads = [(), ()].map(|()| {
            let shared = shared.clone();
            spawn(move || u32::from(number(&shared)))
        });
        let won = u32::from(number(&shared));
        let won = threads.into_iter().fold(won, |sum, thread| sum + thread.join().unwrap());
        assert!(won >= 1, "somebody has the right");
        assert!(number(&shared), "it was given back");
        // SAFETY: as above.
        shared.1.with(|places| assert_eq!(unsafe { *places }, won + 1));
    });
}
