"""Names of the library in backquotes become links to what the reference says of them, wherever they stand."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NAME = re.compile(
    r"(isthmus(?:\.\w+)+)(?:\(\w*\))?"
)  # an argument in parentheses, as in docs/notation.md, is not of it


class LinkedNames(SphinxTransform):
    """`isthmus.fit(ridge)` leads to isthmus.fit; names that the reference does not have stay as they are."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        """Every piece of code within a line, but for those that are a link or a title already."""
        for piece in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(piece.astext())
            if found and not isinstance(piece.parent, nodes.reference | pending_xref | nodes.title):
                link = pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=found[1], refexplicit=True, refwarn=False,
                    refdoc=self.env.docname,
                )  # fmt: skip
                piece.replace_self(link)
                link += piece


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_transform(LinkedNames)
    return {"parallel_read_safe": True}
