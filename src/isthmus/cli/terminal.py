"""The terminal as every command writes to it. What is said: `outcome`, and the file of each command."""

from rich.console import Console


def terminal(*, stderr: bool = False) -> Console:
    """A console that takes all text as it stands: names of columns, classes, layers and folders are no markup."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
