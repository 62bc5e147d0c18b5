"""Data that knows its true rank, and loaders for data of one's own.

Training on it: `training`. Finding the rank: `discovery`. Networks with weights written down: `constructions`.
"""

from isthmus.tasks.arrays import as_samples, check_rows, check_same_length, constant_columns, drop_constant_columns
from isthmus.tasks.benchmark_manifolds import BENCHMARK_MANIFOLDS, benchmark_manifold
from isthmus.tasks.bijective import bijective_rank
from isthmus.tasks.builtin import BUILTIN, builtin
from isthmus.tasks.engineering import ENGINEERING, EngineeringFunction, engineering
from isthmus.tasks.files import read_table
from isthmus.tasks.formulas import FORMULAS, Formula, formula
from isthmus.tasks.ginzburg_landau import ginzburg_landau
from isthmus.tasks.gradients import gradient_covariance, gradients
from isthmus.tasks.images import digits, mnist
from isthmus.tasks.kuramoto_sivashinsky import kuramoto_sivashinsky
from isthmus.tasks.links import Link
from isthmus.tasks.lorenz_chain import lorenz_chain
from isthmus.tasks.manifolds import circle, cube, curve_autoencoder, curved_plane, helix, sphere, swiss_roll, torus
from isthmus.tasks.matrices import read_matrix
from isthmus.tasks.mixture import mixture_classes
from isthmus.tasks.multi_index import multi_index
from isthmus.tasks.multi_mode import multi_mode
from isthmus.tasks.planar import inverted_s_classes, x_cross
from isthmus.tasks.predictors import Inputs, Predictors
from isthmus.tasks.reduction import ReductionModel, reduction_model, spread_index
from isthmus.tasks.scenes import pictures
from isthmus.tasks.spiral_waves import spiral_waves
from isthmus.tasks.surrogate import covariance_surrogate
from isthmus.tasks.symmetry import gradient_descent_symmetry
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.teachers import Activation, composed_teacher, teacher, teacher_reference

__all__ = [
    "BENCHMARK_MANIFOLDS",
    "BUILTIN",
    "ENGINEERING",
    "FORMULAS",
    "Activation",
    "EngineeringFunction",
    "Formula",
    "Inputs",
    "Kind",
    "Link",
    "Predictors",
    "ReductionModel",
    "TableOptions",
    "Task",
    "as_samples",
    "benchmark_manifold",
    "bijective_rank",
    "builtin",
    "check_rows",
    "check_same_length",
    "circle",
    "constant_columns",
    "composed_teacher",
    "covariance_surrogate",
    "cube",
    "curve_autoencoder",
    "curved_plane",
    "digits",
    "drop_constant_columns",
    "engineering",
    "formula",
    "ginzburg_landau",
    "gradient_covariance",
    "gradient_descent_symmetry",
    "gradients",
    "helix",
    "inverted_s_classes",
    "kuramoto_sivashinsky",
    "lorenz_chain",
    "mixture_classes",
    "mnist",
    "multi_index",
    "multi_mode",
    "pictures",
    "read_matrix",
    "read_table",
    "reduction_model",
    "sphere",
    "spiral_waves",
    "spread_index",
    "swiss_roll",
    "teacher",
    "teacher_reference",
    "torus",
    "x_cross",
]
