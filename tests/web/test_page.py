"""The package in a real browser: the known answers, both builds of the kernel, ratings in IndexedDB."""

import pytest

from tests.browser import browser
from tests.web.pages import open_page, serving_pages, wait_for


@pytest.fixture(scope="module")
def results():
    """What every case of web/tests said: nothing, or what was wrong."""
    with browser() as page, serving_pages() as address:
        open_page(page, f"{address}/tests/page.html")
        return dict(wait_for(page, "globalThis.results"))


def test_every_case_holds_in_the_browser(results):
    assert {name: error for name, error in results.items() if error} == {}


def test_no_case_was_left_out(results):
    kinds = [name.partition(": ")[0] for name in results]
    assert (kinds.count("simd"), kinds.count("plain"), len(results)) == (15, 15, 79)
