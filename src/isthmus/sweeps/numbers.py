"""The names of the numbers that a finished run has; nothing else, so that a table is there before torch is.

What they mean: `execution.Computed`, `readings`.
"""

READINGS = ("rank_estimate", "rank_lower", "rank_upper", "rank_jacobian", "rank_hamiltonian")
FLOATS = ("objective", "data_loss", "penalty", "stationarity", "seconds")
COUNTS = ("gradient_evaluations", "steps", "rank", *READINGS, "true_rank")
NUMBERS = (*FLOATS, *COUNTS)
