"""What the tests of pages share: a parser that checks that tags close in order, a name that would run, a browser."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from playwright.sync_api import Browser
from playwright.sync_api import Page as BrowserPage

HOSTILE = "<script>document.title='owned'</script>\"'&"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, and whether its tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@contextmanager
def shown(
    browser: Browser, path: Path, picture: Path, *, scheme: str, width: int
) -> "Generator[tuple[BrowserPage, int]]":
    """A page, open, with the number of its pictures: all of it is there, and nothing was fetched."""
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # pyright: ignore[reportArgumentType] - two of its words
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.screenshot(path=picture, full_page=True)
    assert complaints == []
    assert requests == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    boxes = page.evaluate("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().toJSON())")
    for box in boxes:
        assert box["width"] >= 300
        assert box["height"] >= 200
        assert 0 <= box["left"] <= box["right"] <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", ground)[:3])
    assert (brightness > 600) is (scheme == "light")
    yield page, len(boxes)
    page.close()
