"""The page in a real browser: Debian's chromium, driven by playwright, on files and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.html.inputs import read_inputs
from harness.report.html.page import page_of
from tests.report.pages import BASELINES, COMPARED, RESUMED, checked, whole_run, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDTHS, SCHEMES = (360, 1400), ("light", "dark")
ROWS = ".matrix tbody tr"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything on it."""
    folder = tmp_path_factory.mktemp("report")
    script = folder / "train.py"
    script.write_text("import torch\n\nfor batch in batches:\n    model(**batch).loss.backward()\n")
    check = checked(str(script), message="<script>document.title = 'taken over'</script>")
    paths = [
        written(folder / "a" / "run.json", whole_run(42)),
        written(folder / "b" / "run.json", whole_run(43)),
        written(folder / "check.json", check),
        written(folder / "resume.json", RESUMED),
        written(folder / "compare.json", COMPARED),
        BASELINES / "matrix.json",
        BASELINES / "tiny-plain-cpu.json",
    ]
    page = folder / "report.html"
    page.write_text(page_of(read_inputs(paths), baselines=BASELINES, fallback=None), encoding="utf-8")
    return page


KINDS = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]


@pytest.fixture(params=[KINDS[-1], *(pytest.param(each, marks=pytest.mark.nightly) for each in KINDS[:-1])], ids=str)
def page(request: pytest.FixtureRequest, browser: Browser, file: Path) -> Iterator[Page]:
    """The page, opened from disk. It asked for nothing but itself, and the console says nothing."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said, asked = list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    yield page
    context.close()
    assert said == []
    assert asked == [file.as_uri()]


def focused(page: Page) -> Any:
    return page.evaluate("[document.activeElement.tagName, document.activeElement.type || '']")


def test_nothing_is_cut_off_and_nothing_serious_is_in_the_way(page: Page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the extra browser").Axe()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = axe.run(page).response["violations"]
    assert {each["id"]: each["nodes"][0]["html"] for each in found if each["impact"] in ("serious", "critical")} == {}
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert "taken over" not in page.title()


def test_the_keyboard_comes_everywhere(page: Page) -> None:
    """To links, lists that open, the slider and the filter, in the page's order."""
    seen = []
    for _ in range(400):
        page.keyboard.press("Tab")
        seen.append(tuple(focused(page)))
        if seen[-1] == ("INPUT", "search"):
            break
    order = list(dict.fromkeys(seen))
    assert order.index(("A", "")) < order.index(("SUMMARY", "")) < order.index(("INPUT", "search"))
    assert ("INPUT", "range") in order
    shown = page.locator(f"{ROWS}:visible")
    before = shown.count()
    page.keyboard.type("adamw package")
    assert 0 < shown.count() < before
    assert (
        page.locator(".filter [role=status]").text_content() == f"{shown.count()} of {page.locator(ROWS).count()} rows"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert not page.locator(".filter input[type=checkbox]").is_checked()


def test_enter_opens_what_is_folded(page: Page) -> None:
    details = page.locator(".finding details").first
    details.locator("summary").focus()
    assert not details.locator(".page").is_visible()
    page.keyboard.press("Enter")
    assert details.locator(".page").is_visible()


def test_the_slider_reads_the_curves(page: Page) -> None:
    page.locator(".slider input").first.focus()
    page.keyboard.press("End")
    read = page.locator(".chart .read").all_text_contents()
    assert all(each.startswith("update 1377: about A: tiny, plain loop, seed 42 ") for each in read)
    record = whole_run(42)
    norms = record.curves.grad_norm[-27:]
    assert f" {sum(norms) / len(norms):.2f}" in read[2]


def test_it_is_whole_without_a_script(browser: Browser, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(f"{ROWS}:visible").count() == page.locator(ROWS).count() > 200
    assert not page.locator(".filter").is_visible()
    context.close()


def test_everything_is_printed(browser: Browser, file: Path, tmp_path: Path) -> None:
    """What is folded is opened for it."""
    page = browser.new_page()
    page.goto(file.as_uri())
    page.pdf(path=tmp_path / "report.pdf")
    assert page.locator("details:not([open])").count() == 0
    assert (tmp_path / "report.pdf").stat().st_size > 100_000
    page.close()
