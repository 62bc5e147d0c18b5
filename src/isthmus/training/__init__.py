"""Training to true minima of `data_loss + ridge * penalty`: solvers, exact moves in between, stopping, checkpoints.

The ridge is part of the objective, never hidden in an optimiser. What a trained network shows: `diagnostics`; which
network to trust for a task: `discovery`.
"""

from isthmus.training.batched.fit_batch import fit_batch, fit_many
from isthmus.training.fit import fit
from isthmus.training.fit_result import FitResult, Outcome
from isthmus.training.fitting import FitEvent
from isthmus.training.limits import Limits
from isthmus.training.several import fit_several
from isthmus.training.sharded.distributed import fit_shards

__all__ = ["FitEvent", "FitResult", "Limits", "Outcome", "fit", "fit_batch", "fit_many", "fit_several", "fit_shards"]
