"""Reports in a real browser: quiet, alone, narrow, dark, on paper, and read aloud."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lightfr_harness.audits.cost import findings
from lightfr_harness.compare import compare
from lightfr_harness.records import CostRecord, from_dict
from lightfr_harness.reports import comparison, cost, paper_all
from lightfr_harness.reports.bench import device_rows
from lightfr_harness.reports.pages import page_of
from lightfr_harness.reports.svg import LINE, Plot, Series, share_axis
from lightfr_harness.server.coordinator.accuracy import AccuracyReport
from lightfr_harness.server.coordinator.operations import render
from tests.browser import CHROMIUM, REASON, browser
from tests.harness.audits.cost import records
from tests.harness.record_examples import EXAMPLES
from tests.harness.server.coordinator.helpers import run
from tests.harness.server.coordinator.secure import secure
from tests.harness.server.coordinator.test_evaluations import rounds_of

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=REASON)


def audited(*devices, **changes):
    record = records.record(*devices, **changes)
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return json.loads(json.dumps(record))


def several_profiles():
    watch = records.profile(name="watch", memory_mib=40)
    breach = records.breach("memory", "fit", 40 * records.MIB, 41 * records.MIB)
    killed = records.device(number=1, profile=watch, finished=False, breaches=[breach], ended="memory")
    secure = {**records.SIZES, "privacy": "secagg"}
    return audited(records.secure_device(), killed, scenario=secure)


def compared(*audits):
    before, after = (from_dict(CostRecord, record) for record in audits)
    return comparison.page(before, after, compare(before, after))


def status():
    """The coordinator's page in a secure round, with a history, faults and both kinds of accuracy."""

    async def story(folder):
        async with secure(folder, evaluate_every=1) as it:
            await rounds_of(it, 2)
            await it.coordinator.report_accuracy(AccuracyReport(model_version=1, users=40, hit_rate=0.78, ndcg=0.49))
            it.coordinator.standing.faults.note("7f" * 16, "an upload that does not add up", it.coordinator.now())
            return render(it.coordinator)

    with TemporaryDirectory() as folder:
        return run(story(Path(folder)))


def all_of_the_paper():
    accuracy, costs, figures = (EXAMPLES[f"paper-{part}"] for part in ("accuracy", "costs", "figures"))
    return paper_all.page(paper_all.Parts([accuracy], costs, figures))


PAGES = {
    "paper-all": all_of_the_paper,
    "cost": lambda: cost.page(several_profiles()),
    "comparison": lambda: compared(audited(), several_profiles()),
    "status": status,
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
    assert not re.search(r"url\(|@import|<script|src=|href=(?!\"#)", text)
    assert text.index('class="verdict"') < text.index("<table")
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert all(len(a["aria-label"]) > 40 for _, a in page.tags if a.get("role") == "img")


@pytest.mark.parametrize("name", PAGES)
def test_a_list_of_contents_leads_to_every_section(pages, name):
    page = Page()
    page.feed((pages / f"{name}.html").read_text())
    leads = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    sections = [f"#{attributes['id']}" for tag, attributes in page.tags if tag == "section" and "id" in attributes]
    assert len(sections) == len(set(sections))
    assert leads == (sections if len(sections) > 3 and name != "status" else [])


def test_the_page_names_the_broken_limit_with_its_moment_and_keeps_the_paper_apart():
    text = cost.page(several_profiles())
    assert re.search(r"1 of our \d+ limits is broken", text)
    assert "watch, fit: budget: memory: 41.0 MiB, at most 40.0 MiB (3.2 s after the start, in phase fit)" in text
    assert text.index("is broken") < text.index("not a failure of this software")


def test_the_overview_has_a_share_for_each_device_and_limit_and_marks_the_broken_one():
    text = cost.page(several_profiles())
    overview = text[text.index("Share of budget by device and limit") :].split("</table>")[0]
    heads = re.findall(r'scope="col">([^<]*)', overview)
    latencies = ["fit, p95", "round, p95", "recommend, p95"]
    assert heads == ["device", "memory", "storage", "upload a day", "download a day", *latencies]
    phone, watch = overview.split("<tr>")[2:]
    assert phone.count("<svg") == 7
    assert 'class="broken">102 %' in watch


def test_each_device_has_its_line_in_one_picture_of_memory_and_its_limit_is_said():
    text = cost.page(several_profiles())
    assert text.count("Resident memory over time</b>") == 1
    assert "mid-phone, limit 256 MiB" in text
    assert "watch, limit 40 MiB" in text


def test_memory_is_told_in_mib_alone():
    page = Page()
    page.feed(cost.page(several_profiles()))
    about_memory = [a["data-head"] for _, a in page.tags if "memory" in a.get("data-head", "")]
    assert about_memory
    told = re.findall(r'data-head="[^"]*memory[^"]*"[^>]*>([^<]+)', cost.page(several_profiles()))
    assert {one.split()[-1] for one in told} <= {"MiB", "%"}


def test_points_of_the_privacy_page_carry_their_mode_and_stand_against_accuracy_and_bytes():
    text = page_of(EXAMPLES["privacy"])
    assert re.findall(r'class="tag [^>]*>([^<]+)', text).count("secagg+dp 256") == 2 * 3
    assert ">HR@10</text>" in text
    assert ">bytes of an upload</text>" in text


@pytest.mark.parametrize("heights", [[0.0] * 12 + [0.4, 0.6], [1.0] * 9 + [0.0] * 9, [n / 40 for n in range(16)]])
def test_tags_of_many_modes_do_not_cover_one_another(heights):
    points = [Series(f"mode {n}", [(0.5, y, "")], tag=f"mode {n}") for n, y in enumerate(heights)]
    places = sorted(mark.tag_y for mark in Plot("", share_axis(""), share_axis(""), points).marks())
    assert 0 <= places[0] < places[-1] <= 100
    assert min(lower - upper for upper, lower in pairwise(places)) >= LINE - 0.02


def test_text_from_a_profile_is_escaped():
    odd = audited(records.device(profile=records.profile(name="<script>alert(1)</script>")))
    assert "<script" not in cost.page(odd)


def test_a_partial_record_is_a_page_that_says_so():
    partial = audited(interrupted=True)
    for name in ("training", "figure_1", "inference", "devices"):
        del partial[name]
    assert "was interrupted" in cost.page(partial)


# Whatever stands outside the window or its own box, and texts of a chart that cover one another.
CUT_OFF = """(() => {
  const box = (each) => each.getBoundingClientRect();
  const name = (each) => `${each.tagName}: ${each.textContent.trim().slice(0, 60)}`;
  const all = [...document.body.querySelectorAll("*")].filter((each) => box(each).width > 0 && !each.closest("thead"));
  const outside = all.filter((each) => box(each).left < -0.5 || box(each).right > innerWidth + 0.5);
  const scrolling = all.filter((each) => !each.closest("svg") && each.scrollWidth > each.clientWidth + 1
    && getComputedStyle(each).display !== "inline");
  const covered = [...document.querySelectorAll("figure")].flatMap((figure) => {
    const texts = [...figure.querySelectorAll("text, figcaption")];
    return texts.filter((one, n) => texts.slice(n + 1).some((other) => {
      const [a, b] = [box(one), box(other)];
      return a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
    }));
  });
  return [["outside", outside], ["scrolling", scrolling], ["covered", covered]].flatMap(
    ([what, which]) => which.map((each) => `${what}: ${name(each)}`));
})()"""


@needs_browser
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_it_loads_nothing_complains_of_nothing_and_cuts_nothing_off(shown, pages, name, width, dark):
    path = pages / f"{name}.html"
    shown.show(path, width=width, dark=dark)
    assert shown.complaints() == []
    assert shown.requests() == [path.as_uri()]
    assert shown.value("document.documentElement.scrollWidth") <= width
    assert shown.value(CUT_OFF) == []
    colours = "getComputedStyle(document.documentElement)"
    assert shown.value(f"{colours}.getPropertyValue('--bad').trim()") == ("#ff8a80" if dark else "#b3261e")


@needs_browser
@pytest.mark.parametrize("name", ["cost", "paper-all", "privacy"])
def test_a_tablet_between_a_phone_and_a_desktop_shows_all_of_it_too(shown, pages, name):
    shown.show(pages / f"{name}.html", width=768)
    assert shown.value(CUT_OFF) == []


@needs_browser
def test_the_look_for_what_is_cut_off_finds_it(shown, tmp_path):
    path = tmp_path / "wide.html"
    wide = (
        '<p style="width: 500px">wide</p><div style="width: 50px; overflow: auto"><p style="width: 90px">in</p></div>'
    )
    texts = "<figure><svg><text y='20'>one</text><text y='22'>other</text></svg></figure>"
    path.write_text(f"<body>{wide}{texts}</body>")
    shown.show(path, width=390)
    found = shown.value(CUT_OFF)
    assert {each.split(":")[0] for each in found} == {"outside", "scrolling", "covered"}


@needs_browser
def test_charts_use_the_width_and_tables_become_cards_where_there_is_none(shown, pages):
    for width, is_table in ((1280, True), (390, False)):
        shown.show(pages / "cost.html", width=width)
        assert shown.value("document.querySelector('.plot').getBoundingClientRect().width") > 0.85 * width
        assert shown.value("getComputedStyle(document.querySelector('.many tr')).display === 'table-row'") == is_table


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
    assert any("Resident memory over time" in name and "watch, limit 40 MiB" in name for name in images)
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
