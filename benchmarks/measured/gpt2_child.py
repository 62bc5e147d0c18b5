"""One diagnosis of GPT-2 small by forward passes, in a process of its own, as JSON. Who asks: `networks.py`.

Random weights of the published shape (12 layers of width 768, 50,257 tokens) with a rank planted in two places; tokens
are random too, in sequences of 250, eight at a time. Every fifth batch runs through the bare model as well right before
the diagnosis takes it, so that both are timed side by side.
"""

import json
import re
import sys
import time
from collections.abc import Iterator

import torch
import transformers
from torch import Tensor

import isthmus
from measured.memory_child import resident
from measured.planted_cases import NOISE, of_rank, read

LENGTH, BATCH, EVERY = 250, 8, 5
PLANTED = {"transformer.h.3.mlp.c_proj": 7, "transformer.h.9.attn.c_proj": 40}


def planted_model() -> transformers.GPT2LMHeadModel:
    """GPT-2 small with two matrices of low rank."""
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    for place, rank in PLANTED.items():
        weight = model.get_parameter(f"{place}.weight").data
        weight.copy_(of_rank(weight, rank, NOISE))
    return model


class Loader:
    """Batches of tokens; the bare model runs on every fifth of them."""

    def __init__(self, model: torch.nn.Module, thousands: int) -> None:
        self.model, self.batches = model, -(-1000 * thousands // (LENGTH * BATCH))
        self.bare, self.timed = 0.0, 0

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        """Each once."""
        draws = torch.Generator().manual_seed(1)
        for number in range(self.batches):
            tokens = torch.randint(0, 50_257, (BATCH, LENGTH), generator=draws)
            if number % EVERY == min(2, self.batches - 1):
                began = time.process_time()
                with torch.no_grad():
                    self.model(input_ids=tokens)
                self.bare += time.process_time() - began
                self.timed += 1
            yield {"input_ids": tokens}


def measured(thousands: int) -> dict[str, object]:
    """Forward passes that a diagnosis costs, what it announced and took in MiB, and whether the ranks were read."""
    torch.set_num_threads(1)
    model = planted_model()
    small = torch.nn.Linear(8, 4)
    isthmus.diagnose(small, torch.randn(9, 8), jacobians=False)  # libraries are loaded
    before, said, loader = resident(), list[str](), Loader(model, thousands)
    began = time.process_time()
    found = isthmus.diagnose(model, loader, jacobians=False, progress=said.append)
    taken = time.process_time() - began - loader.bare
    announced = re.search(r"at most ([\d,.]+) MiB", said[0])
    assert announced
    ranks = [read(found.layers, f"dimension_activation {place}") for place in PLANTED]
    forward = loader.bare / loader.timed * loader.batches
    return {
        "announced": float(announced[1].replace(",", "")), "peak": resident() - before,
        "forward": forward, "ratio": taken / forward,
        "ranks": ranks == list(PLANTED.values()), "tokens": loader.batches * LENGTH * BATCH,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
