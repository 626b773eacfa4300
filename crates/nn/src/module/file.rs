//! State dicts in files: the readers and writers are `pullback::io`'s, which Python uses, too.

use super::StateDict;
use pullback::io::{self, safetensors};
use pullback::{Error, Result};
use std::path::Path;

/// The format of a file, by the ending of its name.
enum FileFormat {
    Safetensors,
    Checkpoint,
}

fn format_of(path: &Path) -> Result<FileFormat> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("safetensors") => Ok(FileFormat::Safetensors),
        Some("pt" | "pth" | "ckpt" | "bin") => Ok(FileFormat::Checkpoint),
        _ => Err(Error::value(format!(
            "{}: weights are in files that end in .safetensors, .pt, .pth, .ckpt or .bin",
            path.display()
        ))),
    }
}

impl StateDict {
    /// Writes a file: `.safetensors`, or `.pt` (`.pth`, `.ckpt`, `.bin`) as PyTorch's `torch.save` does.
    ///
    /// # Errors
    /// `ValueError` for other endings, and those of `pullback::io`.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match format_of(path)? {
            FileFormat::Safetensors => safetensors::save(self.iter(), &[("format", "pt")], path),
            FileFormat::Checkpoint => io::save(&self.to_value(), path),
        }
    }

    /// Reads a file that [`StateDict::save`], safetensors or PyTorch wrote.
    ///
    /// # Errors
    /// `ValueError` for other endings, `TypeError` for checkpoints that are no state dict, and those of `pullback::io`.
    pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
        let path = path.as_ref();
        match format_of(path)? {
            FileFormat::Safetensors => Ok(safetensors::load(path)?.tensors.into_iter().collect()),
            FileFormat::Checkpoint => StateDict::from_value(&io::load(path)?),
        }
    }
}
