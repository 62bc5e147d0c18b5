"""Tasks by name, for `builtin:NAME` on the command line. Where each is made: the sibling files."""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from isthmus.errors import DataError
from isthmus.tasks.bijective import bijective_rank
from isthmus.tasks.engineering import engineering
from isthmus.tasks.images import digits, one_hot
from isthmus.tasks.kuramoto_sivashinsky import kuramoto_sivashinsky
from isthmus.tasks.manifolds import circle, curve_autoencoder, helix, sphere, swiss_roll, torus
from isthmus.tasks.mixture import mixture_classes
from isthmus.tasks.planar import inverted_s_classes, x_cross
from isthmus.tasks.symmetry import gradient_descent_symmetry
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.teachers import teacher, teacher_reference


def builtin(name: str, *, seed: int = 0) -> Task:
    """The task called `name` among those that come along (`BUILTIN` lists them).

    Args:
        name: as after `builtin:` on the command line.
        seed: of the tasks that are drawn; measured tables ignore it.

    Raises:
        DataError: no such name; the line suggests the nearest and lists all.

    >>> tasks.builtin("friedman").x.shape
    (500, 10)
    """
    if name not in BUILTIN:
        near = difflib.get_close_matches(name, BUILTIN, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DataError(f"builtin:{name}: unknown.{hint} Known are {', '.join(BUILTIN)}.")
    return BUILTIN[name](seed)


MEASURED = frozenset({"digits", "digits_classes", "diabetes", "linnerud", "wine", "breast_cancer", "iris"})


def _table(name: str, kind: Kind) -> Task:
    """A table of scikit-learn."""
    from sklearn import datasets  # slow to import, and most runs have their own data

    bunch = getattr(datasets, f"load_{name}")()
    x = np.asarray(bunch.data, dtype=np.float64)
    x_names = tuple(str(n) for n in bunch.feature_names)
    source = f"{name} of scikit-learn"
    if kind is Kind.CLASSIFICATION:
        y, _ = one_hot(bunch.target)
        return Task(x, y, None, source, kind, x_names=x_names, y_names=tuple(str(n) for n in bunch.target_names))
    y = np.asarray(bunch.target, dtype=np.float64).reshape(len(x), -1)
    names = getattr(bunch, "target_names", None)  # the diabetes table has none
    return Task(x, y, None, source, kind, x_names=x_names, y_names=() if names is None else tuple(map(str, names)))


BUILTIN: Mapping[str, Callable[[int], Task]] = MappingProxyType(
    {
        "kuramoto_sivashinsky": lambda seed: kuramoto_sivashinsky(seed=seed),
        "digits": lambda seed: digits(),
        "digits_classes": lambda seed: digits(classes=True),
        "diabetes": lambda seed: _table("diabetes", Kind.REGRESSION),
        "linnerud": lambda seed: _table("linnerud", Kind.REGRESSION),
        "wine": lambda seed: _table("wine", Kind.CLASSIFICATION),
        "breast_cancer": lambda seed: _table("breast_cancer", Kind.CLASSIFICATION),
        "iris": lambda seed: _table("iris", Kind.CLASSIFICATION),
        "teacher": lambda seed: teacher(3, d_in=30, d_out=20, num_samples=1000, seed=seed),
        "friedman": lambda seed: engineering("friedman", num_samples=500, seed=seed),
        "teacher_reference": lambda seed: teacher_reference(seed=seed),
        "bijective_rank": lambda seed: bijective_rank(2, d_in=6, d_out=6, num_samples=1000, seed=seed),
        "gradient_descent_symmetry": lambda seed: gradient_descent_symmetry(seed=seed),
        "x_cross": lambda seed: x_cross(seed=seed),
        "inverted_s_classes": lambda seed: inverted_s_classes(seed=seed),
        "mixture_classes": lambda seed: mixture_classes(
            2, d_in=20, num_classes=6, num_samples=2000, overlap=0.1, seed=seed
        ),
        "curve_autoencoder": lambda seed: curve_autoencoder(seed=seed),
        "helix": lambda seed: helix(seed=seed),
        "swiss_roll": lambda seed: swiss_roll(seed=seed),
        "circle": lambda seed: circle(seed=seed),
        "torus": lambda seed: torus(seed=seed),
        "sphere": lambda seed: sphere(seed=seed),
    }
)
