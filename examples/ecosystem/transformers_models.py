"""transformers: GPT-2, BERT, Llama, ViT and T5: gradients, `generate`, saving, `Trainer`.

python -m pullback examples/ecosystem/transformers_models.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch.utils.data import Dataset

SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WORDS = {"vocab_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def gpt2() -> transformers.PreTrainedModel:
    """A small GPT-2."""
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=32, **WORDS)
    return transformers.GPT2LMHeadModel(config)


def bert() -> transformers.PreTrainedModel:
    """A small BERT that tells two classes of texts."""
    config = transformers.BertConfig(intermediate_size=64, num_labels=2, **SIZE, **WORDS)
    return transformers.BertForSequenceClassification(config)


def llama() -> transformers.PreTrainedModel:
    """A small Llama, whose heads share keys in pairs."""
    config = transformers.LlamaConfig(
        intermediate_size=64, num_key_value_heads=2, max_position_embeddings=32, **SIZE, **WORDS
    )
    return transformers.LlamaForCausalLM(config)


def vit() -> transformers.PreTrainedModel:
    """A small ViT that tells two classes of images."""
    config = transformers.ViTConfig(
        intermediate_size=64, image_size=16, patch_size=4, num_labels=2, **SIZE
    )
    return transformers.ViTForImageClassification(config)


def t5() -> transformers.PreTrainedModel:
    """A small T5."""
    config = transformers.T5Config(
        d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, **WORDS
    )
    return transformers.T5ForConditionalGeneration(config)


def examples(model: transformers.PreTrainedModel, count: int) -> dict[str, torch.Tensor]:
    """Input of the kind that a model takes, with its labels."""
    classes = torch.arange(count) % 2
    if model.config.model_type == "vit":
        return {"pixel_values": torch.randn(count, 3, 16, 16), "labels": classes}
    tokens = torch.randint(3, 32, (count, 8))
    is_classifier = model.config.model_type == "bert"
    return {"input_ids": tokens, "labels": classes if is_classifier else tokens}


class Examples(Dataset):
    """The same one by one, as `Trainer` takes them."""

    def __init__(self, model: transformers.PreTrainedModel) -> None:
        self.columns = examples(model, 16)

    def __len__(self) -> int:
        """How many there are."""
        return 16

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """One of them."""
        return {name: column[index] for name, column in self.columns.items()}


def check_gradients(model: transformers.PreTrainedModel) -> None:
    """Loss and backward: every parameter has a finite gradient."""
    loss = model(**examples(model, 4)).loss
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name
    model.zero_grad()


def check_generation(model: transformers.PreTrainedModel) -> None:
    """Greedy search by hand finds what `generate` does; sampling and beams keep to the words."""
    model.eval()
    prompt = torch.randint(3, 32, (2, 4))
    length = {"max_new_tokens": 5, "min_new_tokens": 5}
    for ways in ({"do_sample": True, "top_k": 5}, {"do_sample": False, "num_beams": 3}):
        found = model.generate(prompt, **ways, **length)
        assert bool(((found >= 0) & (found < 32)).all())
    if model.config.is_encoder_decoder:
        return
    written = prompt
    with torch.no_grad():
        for _ in range(5):
            logits = model(input_ids=written).logits[:, -1]
            logits[:, model.config.eos_token_id] = -torch.inf
            written = torch.cat([written, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(model.generate(prompt, do_sample=False, **length), written)


def check_saving(model: transformers.PreTrainedModel) -> None:
    """A model that is read again computes the same."""
    model.eval()
    inputs = examples(model, 2)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
        assert torch.equal(model(**inputs).logits, again(**inputs).logits)


def losses(model: transformers.PreTrainedModel) -> Iterator[float]:
    """Ten steps of `Trainer`, with a checkpoint after five; gives the losses."""
    model.train()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=10,
            per_device_train_batch_size=8,
            learning_rate=5e-3,
            logging_steps=1,
            save_steps=5,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        )
        data: Any = Examples(model)
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data)
        trainer.train()
        assert trainer.state.global_step == 10
        at_the_end = {name: value.clone() for name, value in model.state_dict().items()}
        trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-5")
        # From the checkpoint the same five steps lead to the same weights. (ViT's differ with
        # PyTorch, too.)
        if model.config.model_type != "vit":
            for name, value in trainer.model.state_dict().items():
                torch.testing.assert_close(value, at_the_end[name])
        for entry in trainer.state.log_history:
            if "loss" in entry:
                yield entry["loss"]


def main() -> dict[str, tuple[float, float]]:
    """Runs all of them; gives the first and the last loss of each."""
    transformers.set_seed(0)
    transformers.logging.set_verbosity_error()
    found = {}
    for make in (gpt2, bert, llama, vit, t5):
        model = make()
        check_gradients(model)
        if model.can_generate():
            check_generation(model)
        check_saving(model)
        first, *_, last = losses(model)
        found[make.__name__] = (first, last)
    return found


if __name__ == "__main__":
    for name, (first, last) in main().items():
        print(f"{name}: loss {first:.3f} -> {last:.3f}")
        assert last < first, name
