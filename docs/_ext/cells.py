"""Cells that are for a terminal or a file look like what they are: the magic in their first line is left out."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

LANGUAGES = {".toml": "toml", ".csv": "text", ".py": "python"}


class PlainCells(SphinxTransform):
    """`%%bash` becomes a block of shell, `%%writefile NAME` a block under the name of the file."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        """Every block of code of the page."""
        for block in list(self.document.findall(nodes.literal_block)):
            first, _, rest = block.astext().partition("\n")
            if first.strip() == "%%bash":
                self.show(block, rest, "bash")
            elif first.startswith("%%writefile "):
                name = first.split()[1]
                block.parent.insert(block.parent.index(block), nodes.paragraph("", "", nodes.strong("", name)))
                self.show(block, rest, LANGUAGES.get(name[name.rfind(".") :], "text"))

    @staticmethod
    def show(block: nodes.literal_block, text: str, language: str) -> None:
        """The block with another text in another language."""
        block["language"] = language
        block.rawsource = text
        block.children = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_transform(PlainCells)
    return {"parallel_read_safe": True}
