"""PyTorch's experiments with graphs; none is here."""
