"""Simulated time: one heap of what happens when, programs that wait in it, and an event loop that runs on it.

Exactly one program runs at a time. A device is a greenlet, for the SDK's calls block; a server is an asyncio program.
Whatever would block an operating system's thread gives way to the next event here, so an hour costs nothing.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from greenlet import getcurrent, greenlet

# Lets it be the turn of a host, and returns whose turn it was.
Enter = Callable[["Host | None"], "Host | None"]
# Unix seconds at which every world begins: 2033-05-18.
EPOCH = 2_000_000_000.0


class Killed(BaseException):
    """The program ends here. No handler of the shipped code catches it, and none of its operations works any more."""


class Clock:
    """Seconds since the world began, and what is to happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[list[Any]] = []
        self._count = 0
        self.steps = 0
        self._is_stopped = False

    def at(self, when: float, action: Callable[[], object]) -> list[Any]:
        """Have something done; what is returned can be given to `cancel`."""
        self._count += 1
        entry = [max(when, self.now), self._count, action]
        heapq.heappush(self._heap, entry)
        return entry

    def after(self, seconds: float, action: Callable[[], object]) -> list[Any]:
        return self.at(self.now + seconds, action)

    @staticmethod
    def cancel(entry: list[Any]) -> None:
        entry[2] = None

    def stop(self) -> None:
        """Do nothing more in this run."""
        self._is_stopped = True

    def run(self, until: float) -> None:
        """Do one thing after the other until somebody stops it, or until that time."""
        self._is_stopped = False
        while self._heap and not self._is_stopped:
            if self._heap[0][0] > until:
                self.now = until
                return
            when, _, action = heapq.heappop(self._heap)
            if action is not None:
                self.now = when
                self.steps += 1
                action()


class Host:
    """A machine on which one program runs at a time: its clock may be wrong, and it can die."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Added to the true time, and set by whoever steps the clock.
        self.clock_offset = 0.0
        self.is_alive = True
        # Whether a fault of its disk was drawn since it started: then it may stop by itself.
        self.was_refused = False


class Program:
    """A program that blocks, on a host of its own, from its start to its end or its death."""

    def __init__(self, clock: Clock, host: Host, enter: Enter) -> None:
        self._clock, self.host, self._enter = clock, host, enter
        self._greenlet: greenlet | None = None
        self._waits_for: object | None = None

    def start(self, main: Callable[[], None]) -> None:
        def run() -> None:
            with suppress(Killed):
                main()

        self._greenlet = greenlet(run)
        self._resume()

    def block(self, seconds: float | None) -> Any:
        """Give way until somebody calls what `waking` returned, or so many seconds are over: then None."""
        if seconds is not None:
            self._clock.after(seconds, self.waking(None))
        self._waits_for = self._waits_for or object()
        return getcurrent().parent.switch()

    def waking(self, value: Any) -> Callable[[], None]:
        """What ends the wait that is under way, or begins next, with a value."""
        self._waits_for = token = self._waits_for or object()

        def wake() -> None:
            if self._waits_for is token and self.host.is_alive:
                self._resume(value)

        return wake

    def _resume(self, *value: Any) -> None:
        self._waits_for = None
        before = self._enter(self.host)
        try:
            if self._greenlet is not None:
                self._greenlet.switch(*value)
        finally:
            self._enter(before)

    def die(self) -> None:
        """Unwind the stack of a program whose host is dead. It can do no more harm: see Killed."""
        if self._greenlet is not None and self._greenlet and self._greenlet is not getcurrent():
            before = self._enter(self.host)
            try:
                self._greenlet.throw(Killed)
            finally:
                self._enter(before)


class WorldLoop(asyncio.AbstractEventLoop):
    """What asyncio needs of an event loop, in simulated time. What would run in a thread is a later event."""

    def __init__(self, clock: Clock, host: Host, enter: Enter, pause: Callable[[], float]):
        """`pause` draws how long a thread takes; `enter` says which host's program runs."""
        self._clock, self._host, self._enter, self._pause = clock, host, enter, pause
        # What nobody caught: (message, error).
        self.uncaught: list[tuple[str, BaseException | None]] = []
        # What is to be called as soon as it is this program's turn.
        self._ready: list[asyncio.Handle] = []

    def step(self, function: Callable[..., object], *arguments: object) -> None:
        """Call something as a part of the program, unless that is dead."""
        if not self._host.is_alive:
            return
        before, loop = self._enter(self._host), events._get_running_loop()
        events._set_running_loop(self)
        try:
            function(*arguments)
        except Killed:
            pass
        finally:
            events._set_running_loop(loop)
            self._enter(before)

    def _run(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled() and self._host.is_alive:
            handle._run()

    def _run_ready(self) -> None:
        ready, self._ready = self._ready, []
        for handle in ready:
            self._run(handle)

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        if not self._ready:
            self._clock.at(self._clock.now, lambda: self.step(self._run_ready))
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return self.call_at(self._clock.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._clock.at(when, lambda: self.step(self._run, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Killed:
                raise
            except BaseException as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self._clock.after(self._pause(), lambda: self.step(work))
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._host.is_alive and not isinstance(context.get("exception"), Killed):
            self.uncaught.append((str(context.get("message")), context.get("exception")))

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
