"""Starting the processes of a team, as torchrun describes them in the environment, and ending them.

gloo where there is no CUDA device, NCCL where each process has one. What they do together: `team`.
"""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from isthmus.errors import ProcessLost
from isthmus.training.team import Team

if sys.platform != "win32":
    import resource

TIMEOUT = 600.0


def peak_memory(device: torch.device) -> int:
    """The most bytes that this process has held at once, libraries included; on CUDA those of its device.

    0 on Windows, which does not say.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # kilobytes but on macOS


@contextmanager
def process_group(*, timeout: float = TIMEOUT) -> Generator[Team]:
    """The team that this process belongs to: that of torchrun, else itself alone.

    Args:
        timeout: seconds after which a process that is waited for counts as lost.

    Raises:
        ProcessLost: the others do not come.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team()
        return
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else None
    if device is not None:
        torch.cuda.set_device(device)
    backend = "gloo" if device is None else "nccl"
    patience = timedelta(seconds=timeout)
    try:
        # the store lives in the process that started the others, so it can be asked when one of them is gone
        store, rank, size = next(dist.rendezvous("env://", timeout=patience))
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    except (RuntimeError, ValueError) as error:
        raise ProcessLost(
            f"fit: the {size} processes did not find each other in {timeout:g} s ({error}). Start them with torchrun."
        ) from error
    try:
        yield Team(rank, size, device or torch.device("cpu"), timeout, lambda: store.add("isthmus/said", 1) == 1)
        with suppress(RuntimeError):  # all is done: whoever died now is not missed
            dist.barrier()  # nobody leaves while another may still wait for its message
    finally:
        gc.collect()
        dist.destroy_process_group()
