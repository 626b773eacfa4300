"""transformers: a small Llama learns to repeat a sequence, and generates it.

python -m pullback examples/ecosystem/transformers_tiny.py
"""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> list[int]:
    """Trains, and gives what the model goes on with after ``0 1 2``."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        pad_token_id=7,
        bos_token_id=6,
        eos_token_id=6,
    )
    model = LlamaForCausalLM(config)
    tokens = torch.arange(20).remainder(5).expand(4, 20).contiguous()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(40):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    written = model.generate(
        torch.tensor([[0, 1, 2]]), max_new_tokens=7, do_sample=False, pad_token_id=7
    )
    return written[0, 3:].tolist()


if __name__ == "__main__":
    found = main()
    print(f"0 1 2 goes on with {found}")
    assert found == [3, 4, 0, 1, 2, 3, 4]
