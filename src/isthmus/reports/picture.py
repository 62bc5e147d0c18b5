"""One picture with its words: drawn, as SVG, and as an element of a page.

Which pictures a result has: `pictures`, `layer_pictures`.
"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from isthmus.plots.style import PALETTE, own_settings, uncover

_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
# what matplotlib says for every element in a style sheet; inherited from the root it means the same
_STYLE_ELEMENT = re.compile(r'\s*<style type="text/css">\*\{stroke-linejoin: round; stroke-linecap: butt\}</style>')
_ROOT = 'stroke-linejoin="round" stroke-linecap="butt"'


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: how to draw it and how to say it.

    Attributes:
        name: file name without suffix.
        caption: what it shows and how to read it, printed below.
        description: what it shows, for those who do not see it.
        draw: draws it and returns its axes.
        made: what was made of it already: the figure, laid out, and the SVG under its salt.
    """

    name: str
    caption: str
    description: str
    draw: Callable[[], Axes]
    made: dict[str, Figure | str] = field(default_factory=dict[str, Figure | str], repr=False, compare=False)


def inline_svg(picture: Picture, prefix: str = "") -> str:
    """The picture as an <svg> element for a page: titled, without ids of its neighbours, in the page's colours."""
    # it stands in attributes: settings of others are in it, and no two names may become one
    name = re.sub(r"[^\w-]", lambda odd: f".{ord(odd[0]):x}.", f"{prefix}{picture.name}")
    text = svg_of(picture, name)
    text = text[text.index("<svg") :]
    # matplotlib repeats each text in a comment beside its outlines: names of others have no business there
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    for color, (light, _dark) in PALETTE.items():
        text = text.replace(light, f"var(--{color})")
    text = _STYLE_ELEMENT.sub("", text)
    text = re.sub(r'(<[\w:]+)([^<>]*?)\sstyle="([^"]*)"', _styled_by_attributes, text)
    # the view box scales it; a width in points would overflow a telephone
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    labels = f'aria-labelledby="{name}-title {name}-text"'
    title = f'<title id="{name}-title">{escape(picture.name.replace("_", " "))}</title>'
    return (
        f'{head} {_ROOT} role="img" {labels}>{title}<desc id="{name}-text">{escape(picture.description)}</desc>{rest}'
    )


def _styled_by_attributes(element: re.Match[str]) -> str:
    """An element with its style as attributes: a page whose policy allows one style sheet refuses style="..."."""
    head, others, style = element.groups()
    pairs = dict(part.split(":", 1) for part in style.split(";") if part.strip())
    return f"{head}{others}" + "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs.items())


def drawn(picture: Picture) -> Figure:
    """The figure of a picture, laid out."""
    if "figure" not in picture.made:
        with own_settings():
            figure = picture.draw().get_figure()
            assert isinstance(figure, Figure)
            # laid out once, without drawing: every later saving would do it again
            if (engine := figure.get_layout_engine()) is not None:
                engine.execute(figure)
            figure.set_layout_engine(None)
            uncover(figure)
        picture.made["figure"] = figure
    figure = picture.made["figure"]
    assert isinstance(figure, Figure)
    return figure


def svg_of(picture: Picture, salt: str) -> str:
    """A picture as SVG: the same picture and salt give the same text."""
    if f"svg {salt}" not in picture.made:
        picture.made[f"svg {salt}"] = _svg(drawn(picture), salt)
    text = picture.made[f"svg {salt}"]
    assert isinstance(text, str)
    return text


def _svg(figure: Figure, salt: str) -> str:
    target = io.StringIO()
    # a fixed salt: the same result gives the same file
    with own_settings({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(target, format="svg", metadata=_NO_METADATA)
    return target.getvalue()
