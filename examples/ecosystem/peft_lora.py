"""peft: LoRA on a random GPT-2 trains its own matrices, is saved alone, and is merged.

python -m pullback examples/ecosystem/peft_lora.py
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> tuple[float, float]:
    """Trains, saves, reads and merges; gives the first and the last loss."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=16, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    base = GPT2LMHeadModel(config)
    before = copy.deepcopy(base)
    tokens = torch.arange(20).remainder(5).expand(4, 20).contiguous()
    lora = LoraConfig(r=4, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True)
    model = get_peft_model(base, lora)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
    optimizer = torch.optim.AdamW(trained.values(), lr=0.05)
    losses = []
    for _ in range(100):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    kept = before.state_dict()
    for name, weight in model.get_base_model().state_dict().items():
        if "lora_" not in name:
            assert torch.equal(weight, kept[name.replace("base_layer.", "")]), name
    model.eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        expected = model(input_ids=tokens).logits
        model.save_pretrained(folder)
        assert (Path(folder) / "adapter_model.safetensors").is_file()
        again = PeftModel.from_pretrained(before, folder).eval()
        assert torch.equal(again(input_ids=tokens).logits, expected)
        merged = again.merge_and_unload()
        torch.testing.assert_close(merged(input_ids=tokens).logits, expected, rtol=1e-4, atol=1e-4)
    return losses[0], losses[-1]


if __name__ == "__main__":
    first, last = main()
    print(f"loss {first:.3f} -> {last:.3f}")
    assert last < 0.85 * first
