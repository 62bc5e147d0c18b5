"""Where a weight sits in a module, found from the tensor that a torch function was given."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from torch import Tensor, nn


def block_of(name: str) -> str:
    """The outermost numbered block in which a layer lies, "h.0" of "h.0.attn.c_attn"; empty for a layer in none."""
    parts = name.split(".")
    ends = [i for i, part in enumerate(parts[:-1], 1) if part.isdecimal()]
    return ".".join(parts[: ends[0]]) if ends else ""


class Names:
    """Names of weights, and of the leaf modules that were called.

    Args:
        module: the module that is evaluated.

    Attributes:
        called: names of all modules that ran so far.
        followed: name of the layer whose activation a module computed, by name of the module.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.called: set[str] = set()
        self.followed: dict[str, str] = {}
        self._stack: list[tuple[str, nn.Module]] = []
        self._parameters = {
            parameter.untyped_storage().data_ptr(): (name, parameter) for name, parameter in module.named_parameters()
        }

    def is_parameter(self, tensor: Tensor) -> bool:
        """Whether a tensor is a parameter of the module or a view of one."""
        return tensor.untyped_storage().data_ptr() in self._parameters

    def of(self, weight: Tensor) -> str:
        """Name of the module that owns `weight`, else of the parameter, with [i] for its part number i."""
        storage = weight.untyped_storage().data_ptr()
        current, owner = self._stack[-1] if self._stack else ("", self.module)
        own = getattr(owner, "_parameters", {}).get("weight")
        if isinstance(own, Tensor) and own.untyped_storage().data_ptr() == storage:
            return current or "weight"
        if storage not in self._parameters:
            return current or type(self.module).__name__
        name, parameter = self._parameters[storage]
        name = name.removesuffix(".weight")
        if parameter.numel() == weight.numel():
            return name
        return f"{name}[{(weight.storage_offset() - parameter.storage_offset()) // max(weight.numel(), 1)}]"

    def note_activation(self, layer: str) -> None:
        """The module that runs now computes the activation of `layer`."""
        if self._stack:
            self.followed.setdefault(self._stack[-1][0], layer)

    @contextmanager
    def watching(self) -> Generator[None]:
        """Know which module runs; the hooks go away at the end, whatever happens."""
        handles = [
            handle
            for name, module in self.module.named_modules()
            for handle in (
                module.register_forward_pre_hook(self._entered(name)),
                module.register_forward_hook(self._left),
            )
        ]
        try:
            yield
        finally:
            self._stack.clear()
            for handle in handles:
                handle.remove()

    def _entered(self, name: str) -> Callable[[nn.Module, object], None]:
        def enter(module: nn.Module, _args: object) -> None:
            self.called.add(name)
            self._stack.append((name, module))

        return enter

    def _left(self, _module: nn.Module, _args: object, _output: object) -> None:
        if self._stack:
            self._stack.pop()
