"""Links within the built site: a page, file or anchor that is not there is a warning, and so ends `make docs`."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src", "object": "data"}


class Page(HTMLParser):
    """Where the links of a page lead, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag of the page."""
        found = dict(attrs)
        self.anchors |= {value for value in (found.get("id"), found.get("name")) if value}
        if target := found.get(TARGETS.get(tag, "")):
            self.links.append(target)


def broken(site: Path) -> list[str]:
    """Each link inside of a built site that leads nowhere, as `page: link`."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.resolve().rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = pages.get(target)
            if not target.exists() or (there is not None and unquote(parts.fragment) not in there.anchors):
                found.append(f"{path.relative_to(site.resolve()).as_posix()}: {link}")
    return found


def check(app: Sphinx, failure: Exception | None) -> None:
    """At the end of a build."""
    if failure is None and app.builder.format == "html":
        for link in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning("leads nowhere: %s", link)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("build-finished", check, priority=900)  # behind the copies that are made at the end
    return {"parallel_read_safe": True}
