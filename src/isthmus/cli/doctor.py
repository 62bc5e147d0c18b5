"""`isthmus doctor`: what is installed, what it runs on, and whether a small discovery gives the right answer."""

import os
import platform
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

from isthmus.cli.interrupts import ExitCode
from isthmus.cli.voice import tell

_PACKAGES = (
    "torch", "numpy", "scipy", "scikit-learn", "pandas", "xarray", "safetensors", "matplotlib", "typer",
    "rich", "pyarrow", "openpyxl", "zarr", "onnx", "pint", "dask",
)  # fmt: skip


def doctor() -> int:
    """Versions, threads, libraries, accelerators, memory; and a discovery of known rank in a few seconds.

    Exit codes: 0 all is well, 3 the discovery of known rank came out wrong.
    """
    from isthmus.cli.terminal import labelled, terminal

    facts = installed()
    console = terminal()
    console.print(labelled((name.replace("_", " "), str(value)) for name, value in facts.items()))
    found, seconds = checked_discovery()
    is_right = found == 2
    verdict = "right" if is_right else "WRONG: please report it with the lines above"
    tell(**facts, rank_found=found, rank_known=2, seconds=seconds, is_well=is_right)
    console.print(labelled([("self-check", f"a task of rank 2 read as {found} in {seconds:.1f} s: {verdict}")]))
    return ExitCode.DONE if is_right else ExitCode.DOUBTFUL


def installed() -> dict[str, object]:
    """Versions, threads, libraries of linear algebra, accelerators and memory by name."""
    import torch
    from threadpoolctl import threadpool_info

    from isthmus import __version__
    from isthmus.tasks.memory import in_words, memory_limit

    pools = {f"{p['internal_api']} {p['version'] or ''} (threads: {p['num_threads']})".replace("  ", " ")
             for p in threadpool_info()}  # fmt: skip
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "isthmus": __version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        "packages": ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name))),
        "not_installed": ", ".join(name for name in _PACKAGES if not _version(name)) or "none",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "linear_algebra": ", ".join(sorted(pools)),
        "accelerators": ", ".join(gpus) or "none",
        "memory_for_data": in_words(memory_limit()),
    }


def checked_discovery() -> tuple[int, float]:
    """The rank that is read off a task of rank 2, and the seconds that it took."""
    import numpy as np

    from isthmus.discovery import discover
    from isthmus.training import Limits

    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (200, 2))
    x = z @ rng.standard_normal((2, 6))
    y = np.maximum(z, 0) @ rng.standard_normal((2, 4))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is small on purpose
        found = discover(x, y, ridge=3e-3, starts=2, limits=Limits(evaluations=150), effort="quick")
    return found.rank, time.perf_counter() - began


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
