"""Serves the built package and the known answers to a browser on this machine, and drives the browser."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "web/dist"
FOLDERS = {"/web/": BUILT, "/vectors/": ROOT / "vectors/v1"}
PATIENCE_SECONDS = 120


class Files(SimpleHTTPRequestHandler):
    extensions_map = {".js": "text/javascript", ".html": "text/html", ".wasm": "application/wasm", "": "text/plain"}  # noqa: RUF012

    def do_GET(self):
        """What a test put here; pages, which are made of the name of their script; and files of the folders."""
        path = self.path.partition("?")[0]
        body = self.server.files.get(path)
        if body is None and path.endswith(".html"):
            script = path.removesuffix(".html").removeprefix("/")
            body = f'<!doctype html><script type="module" src="/web/{script}.js"></script>'.encode()
        if body is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self):
        # A worker may then answer for all pages, though its script lies deeper.
        self.send_header("Service-Worker-Allowed", "/")
        # Alone in its process, a page has precise clocks and may measure its memory.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def translate_path(self, path):
        for prefix, folder in FOLDERS.items():
            if path.startswith(prefix):
                return str(folder / path.partition("?")[0].removeprefix(prefix))
        return str(BUILT / "nothing")

    def log_message(self, *_):
        pass


@contextmanager
def serving_pages(files=None):
    """Serve, these files by path too; the address, which a browser takes for a secure one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    server.files = {} if files is None else files
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def open_page(page, address):
    """Go there, without waiting for anything."""
    page.events.clear()
    page.call("Page.navigate", url=address)


def wait_for(page, expression):
    """What a line of JavaScript gives as soon as it gives anything."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if value := page.value(f"JSON.stringify({expression})"):
            return json.loads(value)
        time.sleep(0.05)
    raise AssertionError(f"{expression} did not come: {page.complaints()}")
