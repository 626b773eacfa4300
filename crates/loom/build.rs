//! Sets `cfg(loom)` for this crate alone, so that the files it shares with the library leave their own tests out.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=build.rs");
}
