"""A `Monitor` as a callback of transformers or Lightning, neither of which is imported unless it is asked for.

In a training loop of one's own: call `Monitor.step()` after every step.
"""

import importlib
from typing import Any

from isthmus.diagnostics.monitor import Monitor

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


def transformers_callback(monitor: Monitor) -> Any:
    """A `transformers.TrainerCallback` that records after every `monitor.every`-th step of the optimiser.

    Args:
        monitor: of the model that the trainer trains.

    Raises:
        ImportError: transformers is not installed.
    """

    def on_step_end(_self: object, _args: object, state: Any, _control: object, **_rest: object) -> None:
        monitor.step(int(state.global_step))

    base = _first_of(("transformers",), "transformers_callback").TrainerCallback
    return type("MonitorCallback", (base,), {"on_step_end": on_step_end})()


def lightning_callback(monitor: Monitor) -> Any:
    """A Lightning `Callback` that records after every `monitor.every`-th step of the optimiser.

        monitor = Monitor(module.network, x, every=100)
        lightning.Trainer(max_steps=1000, callbacks=[lightning_callback(monitor)]).fit(module, batches)
        monitor.history

    Args:
        monitor: of the module that the trainer trains, or of a part of it; of a part where the module has no `forward`
            of its own, since a monitor calls it.

    Raises:
        ImportError: neither lightning nor pytorch_lightning is installed.
    """

    def on_train_batch_end(_self: object, trainer: Any, *_rest: object, **_named: object) -> None:
        # with accumulated gradients several batches share one step, and before the first step there is none
        if int(trainer.global_step):
            monitor.step(int(trainer.global_step))

    base = _first_of(_LIGHTNING, "lightning_callback").Callback
    return type("MonitorCallback", (base,), {"on_train_batch_end": on_train_batch_end})()


def _first_of(packages: tuple[str, ...], call: str) -> Any:
    for package in packages:
        try:
            return importlib.import_module(package)
        except ModuleNotFoundError:
            continue
    needed = " or ".join(package.split(".")[0] for package in packages)
    raise ImportError(f"{call}: needs {needed}, which is not installed. Install it, or call Monitor.step() yourself.")
