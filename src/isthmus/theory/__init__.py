"""Pure mathematics of the bottleneck rank: tensors in, tensors out, one function per ledger statement.

No module, file or hidden randomness here. Networks that attain the costs: `constructions`. Training: `training`.
"""

from isthmus.theory.estimate import RankEstimate, Verdict

__all__ = ["RankEstimate", "Verdict"]
