"""Names under which programs import what nested tensors are made of."""
