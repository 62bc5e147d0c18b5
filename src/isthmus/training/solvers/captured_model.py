"""The model of the curvature of a leaky network with both its products as CUDA graphs: two launches, not hundreds.

What the products are: `curvature_model`. Graphs: `training.steps.captured`.
"""

from dataclasses import dataclass, fields
from weakref import WeakKeyDictionary

from torch import Tensor

from isthmus.training.solvers.curvature_model import Linearisation
from isthmus.training.steps.captured import Captured
from isthmus.training.steps.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedLinearisation(Linearisation):
    """A linearisation on memory that stays where it is, so that others of the same network can take its place.

    What a product returns is overwritten by the next one of its kind.

    Attributes:
        taken: features of the linearisation that the memory holds, by which it is known.
        along: what `push` reads.
        back: what `pull` reads.
        graphs: of both.
    """

    taken: list[Tensor]
    along: Tensor
    back: Tensor
    graphs: tuple[Captured[Tensor], Captured[Tensor]]

    @classmethod
    def of(cls, model: Linearisation) -> "CapturedLinearisation":
        """A copy of a linearisation."""
        device = model.S.device
        own = {field.name: getattr(model, field.name) for field in fields(model)}
        for name in ("V", "S", "D", "scale", "mix"):
            own[name] = None if own[name] is None else own[name].clone()
        own["ends"] = tuple(end.clone() for end in model.ends)
        own["waist"] = None if model.waist is None else (model.waist[0], model.waist[1].clone())
        q = len(model.ends[2]) if model.mix is None else model.mix.shape[1]
        along, back = model.V.new_zeros(model.weights()), model.V.new_zeros(len(model.scale), q)
        return cls(**own, taken=[model.S], along=along, back=back, graphs=(Captured(device), Captured(device)))

    def take(self, model: Linearisation) -> bool:
        """Hold what this linearisation holds, if it differs in nothing but its tensors' numbers; whether it does."""
        if self.taken[0] is model.S:
            return True
        mine, others = _tensors(self), _tensors(model)
        if _numbers(self) != _numbers(model) or [t.shape for t in mine] != [t.shape for t in others]:
            return False
        for into, new in zip(mine, others, strict=True):
            into.copy_(new)
        self.taken[0] = model.S
        return True

    def push(self, u: Tensor) -> Tensor:
        """J u, as `Linearisation.push`."""
        self.along.copy_(u)
        return self.graphs[0](lambda: Linearisation.push(self, self.along), None)

    def pull(self, r: Tensor) -> Tensor:
        """J^T r, as `Linearisation.pull`."""
        self.back.copy_(r)
        return self.graphs[1](lambda: Linearisation.pull(self, self.back), None)


def captured(step: Step, model: Linearisation) -> Linearisation:
    """The same model, on a CUDA device with graphs that serve as long as the step and the layers' steps do."""
    if model.S.device.type != "cuda":
        return model
    kept = _KEPT.get(step)
    if kept is None or not kept.take(model):
        _KEPT.pop(step, None)  # its memory goes before the new one is taken
        kept = _KEPT[step] = CapturedLinearisation.of(model)
    return kept


_KEPT: WeakKeyDictionary[Step, CapturedLinearisation] = WeakKeyDictionary()


def _tensors(model: Linearisation) -> list[Tensor]:
    rest = [] if model.waist is None else [model.waist[1]]
    return [model.V, model.S, model.D, *model.ends, model.scale, *rest, *([] if model.mix is None else [model.mix])]


def _numbers(model: Linearisation) -> tuple[object, ...]:
    waist = None if model.waist is None else model.waist[0]
    return model.rho, model.effective_depth, model.learned, waist, model.mix is None
