"""Network classes, the one loop over layers (`walk`), and exact moves that keep the function and lower the norm.

Weights written down by hand: `constructions`. Weights found by training: `training`.
"""

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import LayerState, walk
from isthmus.networks.min_norm import min_norm_projection
from isthmus.networks.rebalancing import rebalance

__all__ = ["FullyConnected", "LayerState", "min_norm_projection", "rebalance", "walk"]
