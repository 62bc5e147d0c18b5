"""Data that knows its true rank, and loaders for data of one's own.

Training on it: `training`. Finding the rank: `discovery`. Networks with weights written down: `constructions`.
"""

from isthmus.tasks.arrays import as_samples, check_rows, check_same_length, constant_columns, drop_constant_columns
from isthmus.tasks.files import read_table
from isthmus.tasks.images import digits
from isthmus.tasks.kuramoto_sivashinsky import kuramoto_sivashinsky
from isthmus.tasks.surrogate import covariance_surrogate
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.teachers import teacher, teacher_reference

__all__ = [
    "Kind",
    "Task",
    "as_samples",
    "check_rows",
    "check_same_length",
    "constant_columns",
    "covariance_surrogate",
    "digits",
    "drop_constant_columns",
    "kuramoto_sivashinsky",
    "read_table",
    "teacher",
    "teacher_reference",
]
