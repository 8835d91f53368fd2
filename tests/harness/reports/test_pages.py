"""Reports in a real browser: quiet, alone, narrow, dark, on paper, and read aloud."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lightfr_harness.audits.cost import findings
from lightfr_harness.compare import compare
from lightfr_harness.records import CostRecord, from_dict
from lightfr_harness.reports import comparison, cost, paper_all
from lightfr_harness.reports.bench import device_rows
from lightfr_harness.reports.pages import page_of
from tests.browser import CHROMIUM, REASON, browser
from tests.harness.audits.cost import records
from tests.harness.record_examples import EXAMPLES

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=REASON)


def audited(*devices, **changes):
    record = records.record(*devices, **changes)
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return json.loads(json.dumps(record))


def several_profiles():
    watch = records.profile(name="watch", memory_mib=40)
    breach = records.breach("memory", "fit", 40 * records.MIB, 41 * records.MIB)
    killed = records.device(number=1, profile=watch, finished=False, breaches=[breach], ended="memory")
    return audited(records.device(), killed)


def compared(*audits):
    before, after = (from_dict(CostRecord, record) for record in audits)
    return comparison.page(before, after, compare(before, after))


def all_of_the_paper():
    accuracy, costs, figures = (EXAMPLES[f"paper-{part}"] for part in ("accuracy", "costs", "figures"))
    return paper_all.page(paper_all.Parts([accuracy], costs, figures))


PAGES = {
    "paper-all": all_of_the_paper,
    "cost": lambda: cost.page(several_profiles()),
    "comparison": lambda: compared(audited(), several_profiles()),
    **{kind: lambda record=record: page_of(record) for kind, record in EXAMPLES.items() if kind != "cost"},
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in PAGES.items():
        (folder / f"{name}.html").write_text(make())
    return folder


@pytest.fixture(scope="module")
def shown():
    with browser() as opened:
        yield opened


class Page(HTMLParser):
    """Collects tags, and whether they close."""

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", PAGES)
def test_a_page_stands_alone_and_says_the_verdict_before_any_table(pages, name):
    text = (pages / f"{name}.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert not re.search(r"url\(|@import|<script|src=|href=", text)
    assert text.index('class="verdict"') < text.index("<table")
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert all(len(a["aria-label"]) > 40 for tag, a in page.tags if tag == "svg")


def test_the_page_names_the_broken_limit_with_its_moment_and_keeps_the_paper_apart():
    text = cost.page(several_profiles())
    assert "1 of our 14 limits is broken" in text
    assert "watch, fit: budget: memory: 43.0 MB, at most 41.9 MB (3.2 s after the start, in phase fit)" in text
    assert "not a failure of this software" in text
    assert text.index("is broken") < text.index("refuted</span>")


def test_the_limit_is_drawn_into_the_timeline_of_its_device():
    text = cost.page(several_profiles())
    assert text.count('class="limit"') == 2
    assert "limit 40 MiB" in text
    assert "limit 256 MiB, above this drawing" in text


def test_text_from_a_profile_is_escaped():
    odd = audited(records.device(profile=records.profile(name="<script>alert(1)</script>")))
    assert "<script" not in cost.page(odd)


def test_a_partial_record_is_a_page_that_says_so():
    partial = audited(interrupted=True)
    for name in ("training", "figure_1", "inference", "devices"):
        del partial[name]
    assert "was interrupted" in cost.page(partial)


@needs_browser
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_loads_nothing_complains_of_nothing_and_fits(shown, pages, name, dark, width):
    path = pages / f"{name}.html"
    shown.show(path, width=width, dark=dark)
    assert shown.complaints() == []
    assert shown.requests() == [path.as_uri()]
    assert shown.value("document.documentElement.scrollWidth") <= width
    colours = "getComputedStyle(document.documentElement)"
    assert shown.value(f"{colours}.getPropertyValue('--bad').trim()") == ("#ff8a80" if dark else "#b3261e")


@needs_browser
@pytest.mark.parametrize("name", ["paper-all", "paper-costs"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_papers_pages_fit_and_their_bars_need_no_scrolling(shown, pages, name, width):
    shown.show(pages / f"{name}.html", width=width)
    assert shown.value("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.panels figure')].map(each => each.scrollWidth - each.clientWidth)"
    assert shown.value(wide) == [0, 0, 0]


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_verdicts_can_be_read_against_their_background(shown, pages, dark):
    """At least 4.5 to 1, as the accessibility guidelines ask of text."""
    shown.show(pages / "cost.html", dark=dark)
    for kind in ("broken", "holds", "confirmed", "refuted"):
        colour = shown.value(f"getComputedStyle(document.querySelector('.{kind}')).color")
        background = (18, 18, 18) if dark else (255, 255, 255)
        assert contrast(tuple(map(int, re.findall(r"\d+", colour)[:3])), background) >= 4.5


def contrast(one, other):
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour):
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@needs_browser
def test_a_screen_reader_finds_headings_tables_and_described_plots(shown, pages):
    shown.show(pages / "cost.html")
    nodes = shown.call("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    roles = {role for role, _ in named}
    assert {"main", "heading", "table", "columnheader", "rowheader", "region"} <= roles
    images = [name for role, name in named if role in ("image", "img")]
    assert any("Resident memory of watch" in name and "limit 40 MiB" in name for name in images)
    assert all(name for role, name in named if role in ("image", "img", "region", "heading"))


@needs_browser
def test_it_prints_on_paper_with_nothing_cut_off(shown, pages):
    shown.show(pages / "cost.html", width=794)
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.value("document.documentElement.scrollWidth") <= 794
    paper = base64.b64decode(shown.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    shown.call("Emulation.setEmulatedMedia", media="")
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") <= 40


def test_each_limit_of_a_measured_device_holds_or_is_broken():
    record = EXAMPLES["device"]
    small = replace(record, peak_rss_bytes=40 * 2**20, loaded=[], most_threads=1)
    large = replace(small, peak_rss_bytes=49 * 2**20, loaded=["numpy"], most_threads=2)
    before, after = ({name: verdict for name, *_, verdict in device_rows(each)} for each in (small, large))
    changed = {name for name in before if before[name] != after[name]}
    assert len(changed) == 3
    assert {(before[name], after[name]) for name in changed} == {("holds", "broken")}
    assert {verdict for name, _, limit, verdict in device_rows(small) if not limit} == {""}
