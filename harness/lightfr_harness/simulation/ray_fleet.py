"""A fleet on Ray: its devices live in actors, on this machine or on a cluster.

A round puts its question, the item codes among it, into Ray's object store once. Actors ask their devices, a few
thousand at a time, and add up each other's sums in a tree; only the last sum and the new codes of the devices come
back. Ratings lie in the object store too, which is mapped, not copied, by the actors of a machine. When an actor is
lost the run ends; its checkpoint goes on.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.training import PublishedModel
from lightfr_harness.errors import CannotRunError, import_package
from lightfr_harness.simulation.asking import Question, Share
from lightfr_harness.simulation.fleet import ASKED_AT_ONCE, Fleet

Codes = npt.NDArray[np.uint8]


class DeviceWorker:
    """Devices in a process of their own, those from number `first` on. An actor's class."""

    def __init__(self, first: int, part: Fleet) -> None:
        self._first = first
        # What comes from the object store cannot be written to.
        self._fleet = Fleet(part.items, part.levels, part.ends, part.user_codes.copy())
        self._model: tuple[int, PublishedModel] | None = None

    def answer(
        self, number: int, question: Question, users: npt.NDArray[np.int64], codes: Codes, so_far: Share | None
    ) -> tuple[Codes, Share]:
        """The codes of these devices after their answers, and what these and others so far add up to.

        `number` tells one question from another.
        """
        if self._model is None or self._model[0] != number:
            self._model = number, question.model.published()
        here = users - self._first
        self._fleet.user_codes[here] = codes
        share = question.answer(
            self._model[1], ((user, self._fleet.devices[user - self._first]) for user in users.tolist())
        )
        return self._fleet.user_codes[here], share if so_far is None else so_far.plus(share)

    def added(self, one: Share, other: Share) -> Share:
        return one.plus(other)

    def usage(self) -> tuple[float, int]:
        """CPU seconds and the most bytes of memory of this process until now, shared ones included."""
        return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class RayFleet(Fleet):
    """A fleet whose devices answer in actors. What its devices keep is here as well, for checkpoints and judging."""

    def __init__(self, fleet: Fleet, workers: int = 0, address: str = "") -> None:
        """Start so many actors; 0: one for each CPU. Without an address Ray runs on this machine, for this run only."""
        super().__init__(fleet.items, fleet.levels, fleet.ends, fleet.user_codes)
        self._ray = _started(workers, address)
        self.n_workers = min(workers or max(1, int(self._ray.cluster_resources().get("CPU", 1))), max(1, len(fleet)))
        worker = self._ray.remote(num_cpus=1)(DeviceWorker)
        self._bounds = [len(fleet) * number // self.n_workers for number in range(self.n_workers + 1)]
        self._workers = [
            worker.remote(first, self._ray.put(fleet.part(first, end))) for first, end in pairwise(self._bounds)
        ]
        self._questions = 0

    def ask(
        self, question: Question, users: npt.NDArray[np.int64], tell: Callable[[float], None] = lambda _: None
    ) -> Share:
        """What these devices answer. Each actor adds up its own, then they add up each other's in a tree."""
        self._questions += 1
        shared, asked, shares, done = self._ray.put(question), {}, [], 0
        for worker, first, end in self._placed():
            here, share = users[(users >= first) & (users < end)], None
            for start in range(0, len(here), ASKED_AT_ONCE):
                some = here[start : start + ASKED_AT_ONCE]
                call = worker.answer.options(num_returns=2)
                codes, share = call.remote(self._questions, shared, some, self.user_codes[some], share)
                asked[codes] = some
            shares += [] if share is None else [share]
        total = self._tree(shares)
        try:
            while asked:
                (codes,), _ = self._ray.wait(list(asked), num_returns=1)
                some = asked.pop(codes)
                self.user_codes[some] = self._ray.get(codes)
                done += len(some)
                tell(done / len(users))
            return question.nothing() if total is None else self._ray.get(total)
        except self._ray.exceptions.RayActorError as error:
            raise CannotRunError(
                "an actor of Ray was lost, with its machine or for want of memory: start again with its --checkpoint"
            ) from error

    def _placed(self) -> Iterator[tuple[Any, int, int]]:
        """Each actor, its first device, and the first that is no longer its own."""
        return zip(self._workers, self._bounds[:-1], self._bounds[1:], strict=True)

    def _tree(self, shares: list[Any]) -> Any:
        while len(shares) > 1:
            adders = iter(self._workers)
            pairs = zip(shares[::2], shares[1::2], strict=False)
            shares = [next(adders).added.remote(*pair) for pair in pairs] + shares[len(shares) & ~1 :]
        return shares[0] if shares else None

    def usage(self) -> list[tuple[float, int]]:
        """CPU seconds and the most bytes of memory of each actor."""
        used: list[tuple[float, int]] = self._ray.get([worker.usage.remote() for worker in self._workers])
        return used

    def close(self) -> None:
        """End the actors, and Ray where it runs for this run only."""
        self._ray.shutdown()


def _started(workers: int, address: str) -> ModuleType:
    # Ray would tell its makers how it is used, and let its workers wait behind everything else on the machine.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray = import_package("ray", "lightfr-harness[ray]", "--engine ray")
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        else:
            ray.init(num_cpus=workers or None, **quiet)
    except Exception as error:  # Ray has no class of its own for what keeps it from starting.
        where = f"at --address {address}" if address else "on this machine, which may be too busy"
        said = f"Ray did not start {where} ({type(error).__name__}): try again, or leave out --engine"
        raise CannotRunError(said) from error
    return ray
