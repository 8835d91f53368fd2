import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import escape
from rich.console import Console

from lightfr.errors import InvalidInputError
from lightfr_harness import demo, records
from lightfr_harness.data.titles import made_up_titles
from lightfr_harness.reports.pages import page_of

# More rounds than anybody waits for.
LONG_DEMO = """
import sys
from pathlib import Path
from lightfr_harness import demo, records
from lightfr_harness.reports.pages import page_of
scene = demo.Scene("small", rounds=1000, processes=3, cohort=24, minimum_cohort=20)
sys.exit(demo.main(Path(sys.argv[1]), scene=scene))
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A short demo: the real one has 16 device processes, and more and larger rounds of a larger set."""
    folder, console = tmp_path_factory.mktemp("demo"), Console(record=True, width=160)
    scene = demo.Scene("small", rounds=2, processes=2, cohort=24, minimum_cohort=20)
    demo.run(console, folder, str(folder / "copy.json"), scene)
    return SimpleNamespace(folder=folder, shown=console.export_text(), record=records.read(folder / "demo.json"))


def test_the_demo_trains_shows_and_reports(short):
    record = short.record
    assert "before training" in short.shown
    assert "learned codes" in short.shown
    assert "secure aggregation" in short.shown
    assert records.read(short.folder / "copy.json") == record
    assert record.rounds == 2
    assert record.processes == 2
    assert record.uploads + record.process_rounds == 2 * 24
    assert record.process_up_bytes > 0
    assert (short.folder / "items.codes").stat().st_size == record.codes_bytes
    assert '<script type="application/json" id="data">{"trust":' in (short.folder / "play.html").read_text()
    page = (short.folder / "demo.html").read_text()
    assert "<svg" in page
    assert "http" not in page
    assert page == page_of(record)
    _require_hidden(record.upload)


def test_terminal_and_report_show_what_the_user_liked_and_what_came_of_it_by_title(short):
    known = {str(title) for title in made_up_titles("small", 0).values()}
    device = short.record.device
    report = (short.folder / "demo.html").read_text()
    for title in (*device["liked"], *device["before"], *device["after"]):
        assert title in known
        # The terminal may break a title over lines.
        assert title.split()[-1] in short.shown
        assert str(escape(title)) in report
    assert device["held_out"] in known
    assert not set(device["liked"]) & set(device["after"])
    assert f"{device['found']} of 2 devices had their user's newest item" in short.shown
    assert (device["held_out"] in device["after"]) == (device["found"] > 0) == (", held out" in report)


def test_too_few_users_are_told_before_anything_is_made(tmp_path):
    rows = "".join(f"u{user},i{item},{1 + item % 5}\n" for user in range(20) for item in range(6))
    (tmp_path / "few.csv").write_text("user_id,item_id,rating\n" + rows)
    with pytest.raises(InvalidInputError, match=r"at least 272 users.*there are 20 users"):
        demo.run(Console(quiet=True), tmp_path / "out", scene=demo.Scene(data=tmp_path / "few.csv"))
    assert not (tmp_path / "out").exists()


def _require_hidden(upload):
    """The upload that went out was masked, and as large for every user; in the clear it would name what was rated."""
    assert abs(upload["masked_ones"] - 0.5) < 0.01
    assert upload["masked_items"] > 500
    assert 0 < upload["clear_items"] <= 64
    assert upload["clear_code_bits"] == 64
    assert upload["clear_bytes"] < upload["masked_bytes"]


def _running_with(word):
    """Processes that have this word in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word in (process / "cmdline").read_text():
                found.append(process.name)
    return found


def test_ctrl_c_ends_the_demo_and_all_that_it_started_in_one_line(tmp_path):
    """In a terminal, which sends the signal to the whole foreground process group."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-c", LONG_DEMO, str(tmp_path)]
    own = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
    # The new session has to take the terminal as its own, or Ctrl-C means nothing there.
    take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen([sys.executable, "-c", take, *command], **own) as child:
        os.close(terminal)
        shown = _read_until(keyboard, "training with secure aggregation")
        assert len(_running_with(str(tmp_path))) >= 5
        os.write(keyboard, b"\x03")
        after = _read_until(keyboard, None)
    os.close(keyboard)
    assert child.returncode == 130
    assert "Traceback" not in shown + after
    assert "Interrupted: the demo has ended" in after
    assert _running_with(str(tmp_path)) == []
    assert not (tmp_path / "work").exists()


def _read_until(keyboard, word):
    """What the terminal shows, up to a word, or to the end."""
    shown = ""
    # Linux says that the other end is closed with an error.
    with suppress(OSError):
        while part := os.read(keyboard, 65_536).decode(errors="replace"):
            shown += part
            if word and word in shown:
                return shown
    assert word is None, f"the demo ended early: {shown}"
    return shown
