"""Starting the processes of a team, as torchrun describes them in the environment, and ending them.

gloo where there is no CUDA device, NCCL where each process has one. What they do together: `team`.
"""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from isthmus.errors import DataError, ProcessLost
from isthmus.networks.devices import CPU, device_argument
from isthmus.training.sharded.team import Team

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
    if sys.platform == "linux":
        # what getrusage says there includes the process that started this one, as large as it was
        status = Path("/proc/self/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # kilobytes but on macOS


def own_device() -> torch.device:
    """The CUDA device of this process among those that torchrun started on this machine; without any, the CPU.

    Raises:
        DataError: there are fewer devices than processes.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    number, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= devices:
        raise DataError(
            f"fit: process {number} of this machine has no CUDA device, there are {devices}. Start no more processes "
            "than that on a machine, or hide the devices with CUDA_VISIBLE_DEVICES= to train on its processors."
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def chosen_device(device: str | None) -> torch.device:
    """Where this process trains.

    Args:
        device: as `networks.devices.device_argument` takes it. None: under torchrun the GPU of this process where there
            are any, alone the CPU. Of several processes each has its own.

    Raises:
        DataError: no such device, one by its number for several processes, or too few of them.
    """
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    try:
        asked = device_argument(device, f"--device {device}")
    except ValueError as error:
        raise DataError(str(error)) from None
    if asked is None:
        return own_device() if "WORLD_SIZE" in os.environ else CPU
    if asked.type == "cuda" and several:
        if device not in {"cuda", "auto"}:
            raise DataError(f"--device {device}: of several processes each has a GPU of its own. Give cuda.")
        return own_device()
    return asked


@contextmanager
def process_group(*, timeout: float = TIMEOUT, device: str | None = None) -> Generator[Team]:
    """The team that this process belongs to: that of torchrun, else itself alone.

    Args:
        timeout: seconds after which a process that is waited for counts as lost.
        device: where it trains, as `chosen_device` takes it.

    Raises:
        ProcessLost: the others do not come.
        DataError: no such device, or none for this process.
    """
    place = chosen_device(device)
    if "WORLD_SIZE" not in os.environ:
        yield Team(device=place)
        return
    size = int(os.environ["WORLD_SIZE"])
    if size == 1:
        yield Team(device=place)
        return
    on_cuda = place.type == "cuda"
    backend = "nccl" if on_cuda else "gloo"
    patience = timedelta(seconds=timeout)
    try:
        # the store lives in the process that started the others, so it can be asked when one of them is gone
        store, rank, size = next(dist.rendezvous("env://", timeout=patience))
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=patience, device_id=place if on_cuda else None
        )
    except (RuntimeError, ValueError) as error:
        raise ProcessLost(
            f"fit: the {size} processes did not find each other in {timeout:g} s ({error}). Start them with torchrun."
        ) from error
    try:
        yield Team(rank, size, place, timeout, lambda: store.add("isthmus/said", 1) == 1)
        with suppress(RuntimeError):  # all is done: whoever died now is not missed
            dist.barrier()  # nobody leaves while another may still wait for its message
    finally:
        gc.collect()
        dist.destroy_process_group()
