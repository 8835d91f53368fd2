"""A real HTTPS server whose answers a test writes itself: for what a good coordinator would never send."""

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ScriptedServer(ThreadingHTTPServer):
    """Answers with `answer(verb, path, headers, body) -> (status, headers, body)`, and remembers what was asked."""

    daemon_threads = True

    def __init__(self, context, answer):
        self.context = context
        self.answer = answer
        self.requests = []
        self.connections = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self):
        return f"https://localhost:{self.server_address[1]}"

    def get_request(self):
        connection, address = super().get_request()
        self.connections += 1
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, client_address):
        """Refused handshakes and broken connections are what these tests are about."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        status, headers, content = self.server.answer(self.command, self.path, self.headers, body)
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        if headers.get("Connection") == "close":
            self.close_connection = True

    do_GET = do_POST  # noqa: N815

    def log_message(self, format, *args):
        pass


class RawServer:
    """A TLS server that answers each request with what `speak(connection)` sends, byte by byte if need be."""

    def __init__(self, context, speak):
        self._context, self._speak = context, speak
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self._threads = []

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        """Wait for every thread: one that still speaks would meet what the next test replaces in `ssl`."""
        self._listener.shutdown(socket.SHUT_RDWR)  # Wakes who waits in accept(); close() does not.
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a server still speaks to a client that is gone"
        self._listener.close()

    def _start(self, work, *arguments):
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        with suppress(OSError):
            while True:
                self._start(self._serve, self._listener.accept()[0])

    def _serve(self, accepted):
        # A client that hangs up ends it.
        with suppress(OSError), self._context.wrap_socket(accepted, server_side=True) as connection:
            while connection.recv(65_536):
                self._speak(connection)
