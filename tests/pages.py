"""What the tests of pages share: a parser that checks that tags close in order, a name that would run, a browser."""

import re
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
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


# what the web's accessibility rules ask of a page and a script can see; each complaint names its rule and its element
ACCESSIBLE = """() => {
  const found = [], all = s => [...document.querySelectorAll(s)];
  const name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + ' ' + (e.innerText || '').slice(0, 30);
  const add = (rule, e) => found.push(rule + ': ' + (e ? name(e) : 'page'));
  const box = e => { const b = e.getBoundingClientRect(); return b.width * b.height > 0; };
  if (!document.documentElement.lang) add('language');
  if (!document.title.trim()) add('title');
  if (all('main').length !== 1) add('one main landmark');
  if (all('h1').length !== 1) add('one first heading');
  all('h1, h2, h3, h4, h5, h6').reduce((before, h) => { const level = +h.tagName[1];
    if (level > before + 1) add('heading order', h);
    if (!h.innerText.trim()) add('empty heading', h); return level; }, 0);
  const ids = all('[id]').map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => found.push('id twice: ' + id));
  all('img').filter(e => !e.hasAttribute('alt')).forEach(e => add('alternative text', e));
  all('svg').filter(e => e.getAttribute('role') !== 'img' || !(e.getAttribute('aria-labelledby') || '').split(' ')
    .every(id => (document.getElementById(id)?.textContent || '').trim())).forEach(e => add('name of a picture', e));
  all('iframe').filter(e => !e.title).forEach(e => add('name of a frame', e));
  all('[aria-labelledby], [aria-describedby]').forEach(e => (e.getAttribute('aria-labelledby') ||
    e.getAttribute('aria-describedby')).split(' ').forEach(id => document.getElementById(id) || add('reference', e)));
  all('table').forEach(t => { if (!t.caption) add('caption', t);
    t.querySelectorAll('th').forEach(h => h.scope || add('scope', h)); });
  all('a, button').filter(e => box(e) && !(e.innerText.trim() || e.ariaLabel)).forEach(e => add('name of a link', e));
  all('dl > *').filter(e => !['DT', 'DD', 'DIV'].includes(e.tagName)).forEach(e => add('list', e));
  all('ul > *, ol > *').filter(e => e.tagName !== 'LI').forEach(e => add('list', e));
  all('[tabindex]').filter(e => e.tabIndex > 0).forEach(e => add('order of focus', e));
  all('body *').filter(e => e.tabIndex < 0 && /(auto|scroll)/.test(getComputedStyle(e).overflow))
    .filter(e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1)
    .forEach(e => add('scrolled by keys', e));
  all('body *').filter(e => !e.closest('main') && e.innerText?.trim() && !['SCRIPT', 'MAIN'].includes(e.tagName))
    .forEach(e => add('outside of the landmark', e));
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const lum = c => { const v = c.slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] + 0.05; };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c[3] !== 0) return c; } return [255, 255, 255]; };
  const ratio = (a, b) => Math.max(lum(a), lum(b)) / Math.min(lum(a), lum(b));
  all('main *').filter(e => box(e) && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(e => !e.closest('svg') && ratio(rgb(getComputedStyle(e).color), ground(e)) < 4.5)
    .forEach(e => add('contrast of text', e));
  all('svg g[id*="text_"] use, svg g[id*="text_"] path').filter(e => !e.closest('defs'))
    .map(e => [e, ratio(rgb(getComputedStyle(e).fill), ground(e.closest('svg').parentElement))])
    .filter(([, r]) => r > 1.01 && r < 4.5).map(([e]) => e)  // of the ground's own colour: on a mark
    .forEach(e => found.push('contrast of a word in a picture: ' + e.closest('svg').parentElement.id));
  return [...new Set(found)];
}"""


def filled(pdf: bytes) -> list[float]:
    """How far down the words of each page of a PDF of Chromium go, as a share of the page; 1 is the lower margin."""
    objects = {int(found[1]): found[2] for found in re.finditer(rb"(\d+) 0 obj(.*?)endobj", pdf, re.DOTALL)}
    shares: list[float] = []
    for body in objects.values():
        contents = re.search(rb"/Type\s*/Page\b.*?/Contents (\d+) 0 R", body, re.DOTALL)
        if contents is None:
            continue
        stream = objects[int(contents[1])].partition(b"stream")[2].lstrip(b"\r\n")
        text = zlib.decompressobj().decompress(stream)
        height = float(re.search(rb"[\d.]+ [\d.]+ [\d.]+ ([\d.]+) re", text)[1]) / 3.125  # pyright: ignore[reportOptionalSubscript]
        lowest = max(float(found[1]) for found in re.finditer(rb"(?:[-\d.]+ ){5}([-\d.]+) Tm", text))
        shares.append((lowest - len(shares) * height) / height)
    return shares


def axe_violations(page: BrowserPage) -> list[str]:
    """What axe-core says against a page; skips where that is not installed.

    It runs beside the page, whose policy would let no other script in.
    """
    try:
        script = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    except ModuleNotFoundError:
        pytest.skip("axe-playwright-python, which brings axe-core, is not installed")
    page.evaluate(script)
    found: list[dict[str, Any]] = page.evaluate("axe.run()")["violations"]
    return [f"{rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]


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
    assert page.evaluate(ACCESSIBLE) == []
    yield page, len(boxes)
    page.close()
