"""What was typed, before it is taken apart: each option has a word of its own, and is given once.

    isthmus discover table.csv --target --out run       "--out" would be the target, and "run" one word too many
    isthmus discover table.csv --target a --target b    b would be the target, and a an input that tells what it is
    isthmus discover table.csv --target F --log --out run       --log alone means all columns that are wide

A word that begins like an option is given with a sign: --target=--odd.
"""

from typing import Any

import typer
from typer.core import TyperCommand

ALONE = {"--log": "all"}  # what an option says that stands alone
_LIST = "COL,COL"  # in the help of an option that takes several columns


class Command(TyperCommand):
    """A subcommand of `isthmus`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does, once the options were looked at.

        Raises:
            typer.BadParameter: an option stands where the word of another belongs, or is given twice.
        """
        if ctx.resilient_parsing:  # while a shell completes the line
            return super().parse_args(ctx, args)
        typed = self._with_words(ctx, args)
        self._check_once(ctx, typed)
        return super().parse_args(ctx, typed)

    def _with_words(self, ctx: Any, args: list[str]) -> list[str]:
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
        return typed

    def _check_once(self, ctx: Any, typed: list[str]) -> None:
        order: list[Any] = self.make_parser(ctx).parse_args(list(typed))[2]
        options = [p for p in order if p.param_type_name == "option" and not (p.is_flag and not p.secondary_opts)]
        for option in options:
            if (times := options.count(option)) > 1:
                hint = f": {option.opts[0]} {_LIST}" if _LIST in (option.help or "") else ""
                raise typer.BadParameter(f"given {times} times. Give it once{hint}", ctx=ctx, param=option)
