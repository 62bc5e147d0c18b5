"""Network classes, the one loop over layers (`walk`), and exact moves that keep the function and lower the norm.

Two lists of moves, both returning new networks. Exact and never raising the penalty: `rebalance`, `min_norm_projection`
(on data), `delete_dead_neurons`, `merge_parallel_neurons`, `caratheodory_prune` (on data), `balance_linear_runs` and
`fold_constant_neurons`; of leaky networks `retimed`.
The same function as another class: `as_fully_connected`.
Exact at a stated cost, or approximate with a stated error: `fold_constant_neurons(..., allow_rise=True)`,
`insert_identity_layers`, `merge_layers`, `compress_depth`.

Exact pieces: `segment_pieces`, `slice_cells`, `class_regions`; sound bounds over a box: `output_range`.

Weights written down by hand: `constructions`. Weights found by training: `training`.
"""

from isthmus.networks.caratheodory import caratheodory_prune
from isthmus.networks.class_regions import ClassRegions, class_regions
from isthmus.networks.depth_moves import MergedNetwork, compress_depth, insert_identity_layers, merge_layers
from isthmus.networks.enclosed import EnclosedJacobians, enclosed_jacobians
from isthmus.networks.facts import facts_of as facts_of  # registers what theory asks of a network
from isthmus.networks.folding import balance_linear_runs, balanced_factors, fold_constant_neurons
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.intervals import output_range
from isthmus.networks.jacobians import ReducedJacobians, jacobians, reduced_jacobians
from isthmus.networks.layers import LayerState, walk
from isthmus.networks.leaky import LeakyResNet
from isthmus.networks.leaky_moves import releaked, retimed, with_steps
from isthmus.networks.min_norm import min_norm_projection
from isthmus.networks.pruning import delete_dead_neurons, merge_parallel_neurons
from isthmus.networks.rebalancing import rebalance
from isthmus.networks.residual_rewriting import as_fully_connected
from isthmus.networks.resnet import ResNet
from isthmus.networks.segments import SegmentPieces, segment_pieces
from isthmus.networks.slices import SliceCells, slice_cells
from isthmus.networks.waist import Waist

__all__ = [
    "ClassRegions",
    "EnclosedJacobians",
    "FullyConnected",
    "LayerState",
    "LeakyResNet",
    "MergedNetwork",
    "ReducedJacobians",
    "ResNet",
    "SegmentPieces",
    "SliceCells",
    "Waist",
    "as_fully_connected",
    "balance_linear_runs",
    "balanced_factors",
    "caratheodory_prune",
    "class_regions",
    "compress_depth",
    "delete_dead_neurons",
    "enclosed_jacobians",
    "fold_constant_neurons",
    "insert_identity_layers",
    "jacobians",
    "merge_layers",
    "merge_parallel_neurons",
    "min_norm_projection",
    "output_range",
    "rebalance",
    "reduced_jacobians",
    "releaked",
    "retimed",
    "segment_pieces",
    "slice_cells",
    "walk",
    "with_steps",
]
