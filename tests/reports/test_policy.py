"""What a browser does with a page whose escaping failed: nothing runs, nothing is fetched, nothing is restyled."""

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from markupsafe import Markup
from playwright.sync_api import Browser

import discoveries
from isthmus.reports import report
from isthmus.reports.gallery_page import Gallery, Section, write_gallery
from isthmus.reports.tables import TableText
from isthmus.reports.words import VerdictText

# every way in that a page of ours could offer: markup that nobody escaped
OUTSIDE = "http://127.0.0.1:PORT"
WAYS_IN = (
    "<script>document.title='owned'</script>",
    "<svg onload=\"document.title='owned'\"></svg>",
    "<img src='data:,' onerror=\"document.title='owned'\">",
    f"<img src='{OUTSIDE}/seen.png'>",
    f"<link rel='stylesheet' href='{OUTSIDE}/seen.css'>",
    "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
    f"<object data='{OUTSIDE}/seen'></object>",
    "<style>h1 { display: none }</style>",
    "<p id='styled' style='position: fixed'>covers the verdict</p>",
    f"<base href='{OUTSIDE}/'>",
)
INJECTED = Markup("".join(WAYS_IN))  # Markup: the templates take it for escaped


def _discovery(path: Path) -> None:
    report(discoveries.discovery(warnings=(INJECTED,)), path, pictures=())


def _diagnosis(path: Path) -> None:
    found = discoveries.discovery().diagnosis
    found.skipped.append((INJECTED, "why"))
    report(found, path, pictures=())


def _gallery(path: Path) -> None:
    claims = TableText(("claim",), ((INJECTED,),))
    section = Section("a", "A", "made", "confident", "holds", claims, (), {})
    write_gallery(path, Gallery("Figures", VerdictText("One claim holds", ()), [section], {}, claims=claims))


PAGES = {"discovery": _discovery, "diagnosis": _diagnosis, "gallery": _gallery}


class Outside(ThreadingHTTPServer):
    """A host that hears what a page asks it for: a browser tells of requests that its policy has stopped, too."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Heard)


class _Heard(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Outside)
        self.server.asked.add(self.path)
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with Outside() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _opened(browser: Browser, path: Path) -> tuple[str, str, str]:
    """Title, whether the verdict is shown, how the styled paragraph is placed."""
    page = browser.new_page()
    page.goto(path.as_uri(), wait_until="load")
    found = (
        page.title(),
        page.evaluate("getComputedStyle(document.querySelector('h1')).display"),
        page.evaluate("getComputedStyle(document.querySelector('#styled')).position"),
    )
    page.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "write",
    [_discovery, *(pytest.param(write, marks=pytest.mark.slow) for write in (_diagnosis, _gallery))],
    ids=PAGES,
)
def test_what_was_injected_does_nothing(
    write: Callable[[Path], None], outside: Outside, browser: Browser, tmp_path: Path
) -> None:
    path, control = tmp_path / "page.html", tmp_path / "control.html"
    write(path)
    text = path.read_text().replace(OUTSIDE, f"http://127.0.0.1:{outside.server_port}")
    path.write_text(text)
    control.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text))
    assert _opened(browser, control) == ("owned", "none", "fixed"), "without the policy the ways in are open"
    assert outside.asked == {"/seen", "/seen.css", "/seen.png"}
    outside.asked.clear()
    title, verdict, place = _opened(browser, path)
    assert title != "owned"
    assert (outside.asked, verdict, place) == (set(), "block", "static")


@pytest.mark.parametrize("write", PAGES.values(), ids=PAGES)
def test_the_policy_comes_before_anything_of_the_users_and_allows_no_more_than_a_style_and_a_script(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    write(tmp_path / "page.html")
    head = (tmp_path / "page.html").read_text().split("<title>")[0]
    allowed = re.search(r'Content-Security-Policy" content="([^"]*)"', head)
    assert allowed is not None
    rules = dict(rule.strip().split(" ", 1) for rule in allowed[1].replace("&#39;", "'").split(";"))
    for ours in ("style-src", "script-src"):
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rules.pop(ours))
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
