"""A coordinator and its authority that really listen, in a thread, and a client made of the standard library."""

import asyncio
import http.client
import io
import json
import threading
from dataclasses import replace
from urllib.parse import urlsplit

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.authority import Credentials
from lightfr_harness.server.authority.serving import serving as serving_authority
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.limits import FOR_DEVICES, FOR_NEWCOMERS
from lightfr_harness.server.coordinator.options import make_rule
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.serving import Addresses, serving
from lightfr_harness.server.coordinator.telemetry import Log
from tests.harness.server.coordinator.helpers import ITEMS, SETTINGS

COORDINATOR = "/lightfr.v1.CoordinatorService/"
ENROLLMENT = "/lightfr.v1.EnrollmentService/"
PROTO = {"Content-Type": "application/proto"}
TIMEOUT_SECONDS = 20


class Live:
    def __init__(
        self,
        folder,
        authority,
        items=ITEMS,
        settings=SETTINGS,
        make_rule=make_rule,
        observer=None,
        for_devices=FOR_DEVICES,
        for_newcomers=FOR_NEWCOMERS,
        browsers=None,
        **plan,
    ):
        self.folder, self.authority, self.log = folder, authority, io.StringIO()
        self._make_rule, self._observer = make_rule, observer
        self._limits, self._wanted = (for_devices, for_newcomers), Addresses(browsers=browsers)
        self.credentials = Credentials(authority.coordinator, now=authority._now)
        self._admission = authority.admission()
        self._made = (items, settings, Plan(**{"goal": 3, "over_selection": 1.5, **plan}))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(TIMEOUT_SECONDS)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()

    async def _serve(self):
        items, settings, plan = self._made
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        log = Log(self.log)
        self.coordinator = Coordinator(
            self.folder, items, settings, plan, self.credentials, log, make_rule=self._make_rule
        )
        await self.coordinator.start()
        rounds = asyncio.create_task(self.coordinator.run())
        for_devices, for_newcomers = self._limits
        served = serving(self.coordinator, self.credentials, self._wanted, log, self._observer, for_devices)
        newcomers = serving_authority(self.authority, self._admission, "127.0.0.1", 0, log, for_newcomers)
        async with served as addresses, newcomers as port:
            self.addresses = json.loads(replace(addresses, enrollment_port=port).as_json())
            self._ready.set()
            await self._stop.wait()
        rounds.cancel()
        await self.coordinator.close()

    def refresh(self):
        """See at once what was revoked."""
        self.credentials.refresh()
        self._admission.refresh()

    def connection(self, context, name="server"):
        address = urlsplit(self.addresses[name])
        return http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=TIMEOUT_SECONDS)

    def operations(self, method, path, body=None, headers=None):
        address = urlsplit(self.addresses["operations"])
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT_SECONDS)
        return exchange(connection, method, path, body, headers or {})


def exchange(connection, method, path, body=None, headers=PROTO):
    """One request on its own connection: (status, headers, body)."""
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def call(live, context, method, request, response_type, **headers):
    """One procedure that must succeed."""
    body = request if isinstance(request, bytes) else request.SerializeToString()
    status, _, answer = exchange(live.connection(context), "POST", COORDINATOR + method, body, PROTO | headers)
    assert status == 200, answer
    return response_type.FromString(answer)


def reason_of(body):
    """The ErrorDetail in a Connect error."""
    import base64

    from lightfr.v1 import error_pb2

    (detail,) = json.loads(body)["details"]
    assert detail["type"] == "lightfr.v1.ErrorDetail"
    return error_pb2.ErrorDetail.FromString(base64.b64decode(detail["value"] + "=" * (-len(detail["value"]) % 4)))


def place(live, context, request):
    return call(live, context, "CheckIn", request, pb.CheckInResponse).assignment
