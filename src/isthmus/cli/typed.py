"""What was typed, before it is taken apart: an option that needs a word is not given the name of the next option.

    isthmus discover table.csv --target --out run       "--out" would be the target, and "run" one word too many
    isthmus discover table.csv --target F --log --out run       --log alone means all columns that are wide

A word that begins like an option is given with a sign: --target=--odd.
"""

from typing import Any

import typer
from typer.core import TyperCommand

ALONE = {"--log": "all"}  # what an option says that stands alone


class Command(TyperCommand):
    """A subcommand of `isthmus`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does, of what is left when each option has its word.

        Raises:
            typer.BadParameter: an option stands where the word of another belongs.
        """
        options = [option for option in self.params if option.param_type_name == "option"]
        names = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        hungry = {name for option in options if not getattr(option, "is_flag", False) for name in option.opts}
        typed, options_end = list[str](), args.index("--") if "--" in args else len(args)
        for place, word in enumerate(args):
            typed.append(word)
            if word not in hungry or place >= options_end or (place and args[place - 1] in hungry - set(ALONE)):
                continue
            following = args[place + 1] if place + 1 < options_end else None
            if word in ALONE and (following is None or following in names):
                typed[-1] = f"{word}={ALONE[word]}"
            elif following in names:
                raise typer.BadParameter(f"{word} needs a word after it, and {following} is an option", ctx=ctx)
        return super().parse_args(ctx, typed)
