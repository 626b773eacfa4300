//! Tells the crate which Python it is built for: `cfg(Py_3_12)` and the like, and `cfg(has_layout)` if the form of its
//! frames is known (`src/raw/frame.rs`).
fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_layout)");
    pyo3_build_config::use_pyo3_cfgs();
    let python = pyo3_build_config::get();
    let has_lock = python.build_flags().0.iter().all(|flag| flag.to_string() != "Py_GIL_DISABLED");
    let is_known = (11..=13).contains(&python.version().minor) && python.version().major == 3;
    let is_unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    let is_wide = std::env::var("CARGO_CFG_TARGET_POINTER_WIDTH").is_ok_and(|width| width == "64");
    if is_known && has_lock && is_unix && is_wide {
        println!("cargo::rustc-cfg=has_layout");
    }
}
