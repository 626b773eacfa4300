"""Two devices that main memory stands for: these tests have a process of their own."""

import pullback as torch

torch.cuda.simulate(2)
