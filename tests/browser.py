"""A headless Chromium over its own debugging pipe: no driver, no port, and nothing to install but the browser."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections import deque
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REASON = "there is no Chromium here (Debian: apt-get install chromium)"
# The sandbox needs privileges that containers lack; pages under test are our own files.
FLAGS = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")


class Browser:
    """One page. Every event that the browser sends is kept in `events`."""

    def __init__(self, to_browser, from_browser):
        self._to, self._from = to_browser, from_browser
        self._number, self._buffer, self._session = 0, b"", None
        self.events = []
        self._messages = deque()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Ask, and wait for the answer; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def show(self, path, *, width=1000, height=800, dark=False):
        """Load a file in a window of that size and colour scheme, and wait until it stands."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression):
        """What a line of JavaScript gives."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, path):
        """The whole page as a PNG file."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in loud]

    def requests(self):
        """Addresses that the page asked for."""
        asked = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def _next(self):
        while not self._messages:
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            *whole, self._buffer = (self._buffer + chunk).split(b"\0")
            self._messages.extend(json.loads(message) for message in whole)
        return self._messages.popleft()


@contextmanager
def browser(*flags):
    """Start Chromium, with further flags; it reads commands from its descriptor 3 and answers on 4."""
    command_end, to_browser = os.pipe()
    from_browser, answer_end = os.pipe()
    # High numbers first, so that neither is overwritten by the other on its way to 3 and 4.
    passed = [os.dup(end) for end in (command_end, answer_end)]
    redirect = 'exec "$@" 3<&{} 4>&{}'.format(*passed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["bash", "-c", redirect, "bash", CHROMIUM, *FLAGS, *QUIET, *flags, f"--user-data-dir={profile}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        child = subprocess.Popen(command, pass_fds=passed, **quiet)
        for end in (command_end, answer_end, *passed):
            os.close(end)
        try:
            opened = Browser(to_browser, from_browser)
            yield opened
            opened._session = None
            opened.call("Browser.close")
        finally:
            os.close(to_browser)
            os.close(from_browser)
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
