"""The page that a person plays with, in a real Chromium, from disk as people open it."""

import re
import time
from types import SimpleNamespace

import pytest

from lightfr_harness.data.titles import Title, made_up_titles
from lightfr_harness.demo.page import write_page
from tests.browser import CHROMIUM, REASON, browser
from tests.harness.demo.models import trained_model
from tests.harness.reports.test_pages import luminance

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=REASON)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A page as the demo writes it, with a model that has learned its genres well."""
    folder = tmp_path_factory.mktemp("page")
    models, trust = trained_model(folder, synthetic="small", rounds=12, fraction=0.6)
    titles = made_up_titles("small", 0)
    # Whoever names an item can neither end the script nor become part of the page.
    titles["i0"] = Title("</script><img src=x onerror=alert(1)>", titles["i0"].genres)
    write_page(folder / "play.html", models, trust, titles, "Devices have <learned>.", "It went well.")
    return folder / "play.html"


@pytest.fixture(scope="module")
def opened():
    with browser() as page:
        yield page


def _open(page, page_file, **how):
    page.show(page_file, **how)
    ends = time.monotonic() + 60
    while not page.value("document.body.classList.contains('ready')"):
        assert time.monotonic() < ends, page.value("document.body.innerText")
        time.sleep(0.05)


def _press(page, key, code):
    text = {"text": " "} if key == " " else {}
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


def _seen(page):
    """What the page shows: the titles of the list, the bits, how many titles are rated, and what was sent."""
    texts = "[...document.querySelectorAll('#list .name')].map((one) => one.textContent).join('|')"
    bits = "[...document.querySelectorAll('#bits span')].map((bit) => +bit.classList.contains('set')).join('')"
    names = ("rated", "sent", "requests", "failed")
    said = {name: page.value(f"document.getElementById('{name}').textContent") for name in names}
    return SimpleNamespace(titles=page.value(texts).split("|"), bits=page.value(bits), **said)


@needs_browser
def test_somebody_rates_five_with_the_keyboard_and_the_list_changes_while_nothing_is_sent(page_file, opened):
    _open(opened, page_file, width=1280)
    before = _seen(opened)
    assert (len(before.titles), len(before.bits), before.rated) == (10, 64, "0 of 5 rated")
    label = "(document.activeElement.getAttribute('aria-label') ?? '')"
    for _ in range(5):
        _press(opened, "Tab", 9)
        while not opened.value(label).startswith("Like: "):
            _press(opened, "Tab", 9)
        liked = opened.value(label)
        _press(opened, " ", 32)
        _wait(opened, f"{label} === {liked!r} && document.activeElement.ariaPressed === 'true'")
    after = _seen(opened)
    assert after.rated == "5 rated"
    assert after.titles != before.titles
    assert after.bits != before.bits
    assert not set(after.titles) & {liked.removeprefix("Like: ")}
    assert (after.sent, after.requests, after.failed) == ("0 bytes sent", "0", "")
    assert opened.requests() == [page_file.as_uri()]
    assert opened.complaints() == []


def _wait(page, condition):
    ends = time.monotonic() + 30
    while not page.value(condition):
        assert time.monotonic() < ends, condition
        time.sleep(0.02)


@needs_browser
def test_likes_of_one_genre_bring_more_of_it(page_file, opened):
    _open(opened, page_file)
    genre = opened.value("document.querySelector('#asked .genre').textContent")
    count = f"[...document.querySelectorAll('#list .genre')].filter((one) => one.textContent === '{genre}').length"
    at_first = opened.value(count)
    for rated in range(1, 6):
        card = f"[...document.querySelectorAll('#asked .card')].find((one) => one.innerText.includes('{genre}'))"
        opened.value(f"{card}.querySelector('.like').click()")
        _wait(opened, f"document.getElementById('rated').textContent.startsWith('{rated} ')")
        opened.value("document.getElementById('others').click()")
        _wait(opened, f"{card} !== undefined")
    assert opened.value(count) >= at_first + 2


@needs_browser
def test_taking_everything_back_shows_the_first_list_again(page_file, opened):
    _open(opened, page_file)
    before = _seen(opened)
    opened.value("document.querySelector('#list .dislike').click()")
    _wait(opened, "document.getElementById('rated').textContent === '1 of 5 rated'")
    assert before.titles[0] not in _seen(opened).titles
    opened.value("document.getElementById('forget').click()")
    _wait(opened, "document.getElementById('rated').textContent === '0 of 5 rated'")
    assert _seen(opened) == before


@needs_browser
def test_the_browser_itself_holds_the_page_to_sending_nothing(page_file, opened):
    _open(opened, page_file)
    opened.value(
        "addEventListener('securitypolicyviolation', (event) => (globalThis.refused = event.violatedDirective))"
    )
    opened.value("void fetch('https://localhost/').catch(() => 0)")
    _wait(opened, "globalThis.refused === 'connect-src'")


@needs_browser
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_overflows_the_page(page_file, opened, width):
    _open(opened, page_file, width=width)
    assert opened.value("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('main *')].filter((one) => one.scrollWidth > one.clientWidth + 1"
    assert opened.value(f"{wide} && getComputedStyle(one).display !== 'inline' && !one.closest('.hidden')).length") == 0


@needs_browser
def test_a_screen_reader_finds_a_name_for_everything(page_file, opened):
    _open(opened, page_file)
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    told = ("button", "heading", "image", "img", "link", "progressbar", "region", "complementary")
    assert all(name for role, name in named if role in told)
    assert len({name for role, name in named if role == "button"}) >= 20
    assert any("64 bits" in name for role, name in named if role in ("image", "img"))


@pytest.mark.parametrize("theme", [0, 1])
def test_text_of_the_page_stands_out_in_both_themes(page_file, theme):
    style = re.search("<style>(.*?)</style>", page_file.read_text(), re.DOTALL)[1]
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6})", style.split("@media")[theme]))
    for pair in ("ink page", "ink card", "quiet page", "quiet card", "accent page", "good page", "good card",
                        "on-accent accent", "page quiet", "bad page"):  # fmt: skip
        front, back = pair.split()
        light, dark = sorted((_luminance(colours[front]), _luminance(colours[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def _luminance(digits):
    whole = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    return luminance(bytes.fromhex(whole))
