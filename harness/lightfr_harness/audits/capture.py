"""What an attacker has after a training run, and, apart from it, the truth that attacks are scored by.

The attacker is the coordinator with a few colluding devices: every published matrix, every byte uploaded, who sent it,
the gate's counts, and all that the colluding devices know. `Capture` holds nothing else; an attack takes a `Capture`
(or one `RoundView`), and only the scoring beside it takes a `Truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lightfr.training import fit_for_round
from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr.v1 import model_pb2
from lightfr_harness.aggregate import UploadReader
from lightfr_harness.aggregate.bits import unpack_signs
from lightfr_harness.aggregate.uploads import Upload
from lightfr_harness.datasets.ratings import Ratings
from lightfr_harness.fleet import Fleet, TrainingRun

Signs = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# The most a device weighs in W and v when it uploads at most 64 rows.
LARGEST_WEIGHT = 64
COLLUDING_SHARE = 0.05
FEWEST_COLLUDERS = 4


@dataclass(frozen=True)
class CohortSum:
    """What secure aggregation gives the coordinator: sums over a cohort. W, v and w are zero with objective paper."""

    rows: Ints
    products: Ints
    user_sum: Ints
    weight: int
    n_devices: int


@dataclass(frozen=True)
class RoundView:
    """One round as the coordinator sees it. `uploads[j]` came from `devices[j]`; under secagg it is masked.

    Masked uploads are kept of a campaign's last round only: they are uniform bytes, and gigabytes of them otherwise.
    """

    before: Signs
    after: Signs
    model: model_pb2.RoundModel
    open_rows: npt.NDArray[np.bool_]
    devices: tuple[int, ...]
    uploads: tuple[bytes, ...]
    total: CohortSum

    def read(self) -> Iterator[tuple[int, Upload]]:
        """The uploads in the clear, by device."""
        reader = UploadReader(self.model)
        return ((device, reader.read(upload)) for device, upload in zip(self.devices, self.uploads, strict=True))


@dataclass(frozen=True)
class Knowledge:
    """What the attacker knows without the capture: the colluding devices' ratings, and the scale of all ratings."""

    levels: tuple[int, ...]
    """The steps of the scale, each 0 .. 2520."""
    colluders: tuple[int, ...]
    items: dict[int, Ints]
    """Rated items of each colluder."""
    steps: dict[int, Ints]
    """For each of them its place in `levels`."""
    codes: tuple[Signs, ...]
    """By round, the codes that the colluders fitted."""

    def level_counts(self, n_items: int) -> Floats:
        """How often colluders gave each item each level: n_items x levels."""
        counts = np.zeros((n_items, len(self.levels)))
        for user in self.colluders:
            np.add.at(counts, (self.items[user], self.steps[user]), 1)
        return counts


@dataclass(frozen=True)
class Capture:
    """Everything the attacker has."""

    mode: str
    rounds: tuple[RoundView, ...]
    item_counts: Ints
    """The gate's counts: how many devices rate each item."""
    n_users: int
    knowledge: Knowledge

    @property
    def is_clear(self) -> bool:
        return not self.mode.startswith("secagg")

    @property
    def upload_bytes(self) -> float:
        """Mean size of an upload."""
        sizes = [len(upload) for view in self.rounds for upload in view.uploads]
        return float(np.mean(sizes)) if sizes else 0.0


@dataclass(frozen=True, repr=False)
class Truth:
    """What the devices kept to themselves. For scoring only."""

    items: tuple[Ints, ...]
    steps: tuple[Ints, ...]
    codes: tuple[dict[int, Signs], ...]
    """By round, the code behind each device's upload."""
    rows: tuple[dict[int, Ints], ...] = ()
    """By round, the rows that each device uploaded."""
    scored: tuple[int, ...] = ()
    """Users who took part at least once and do not collude."""
    bystanders: Signs | None = None
    """Codes that devices outside the last cohort would have fitted: what a claim that is mere luck looks like."""

    def last_codes(self) -> dict[int, Signs]:
        """The code of each user's last round."""
        return {user: code for codes in self.codes for user, code in codes.items()}


def sum_uploads(view_model: model_pb2.RoundModel, uploads: list[Upload], n_items: int) -> CohortSum:
    """Add up a cohort, as the server does: see "The server" in docs/protocol.md."""
    f = view_model.code_bits
    wide = np.zeros((n_items, f), np.int64)
    ternary = np.zeros((n_items, f), np.int32)
    for upload in uploads:
        if upload.rows.WhichOneof("rows") == "ternary":
            upload.add_to(ternary)
        else:
            wide[upload.item_indices] += upload.values()
    if view_model.objective == model_pb2.OBJECTIVE_PAPER:
        return CohortSum(wide + ternary, np.zeros((f, f), np.int64), np.zeros(f, np.int64), 0, len(uploads))
    codes = np.array([unpack_signs(upload.rows.user_code, (f,)) for upload in uploads], np.int64).reshape(-1, f)
    weights = np.array([max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS) for upload in uploads], np.int64)
    products = (codes * weights[:, None]).T @ codes
    return CohortSum(wide + ternary, products, weights @ codes, int(weights.sum()), len(uploads))


def masked_upload_stand_in(n_open: int, code_bits: int, n_devices: int, random_bytes: Callable[[int], bytes]) -> bytes:
    """A masked upload: uniform bytes of its packed size, dense over all open rows, then W, v and w.

    To be replaced by the SDK's own masked upload. To whoever lacks the masks that one is uniform too, so no attack on a
    single upload can tell the two apart.
    """
    row_bits = _bits_for(n_devices)
    sum_bits = _bits_for(n_devices * LARGEST_WEIGHT)
    n_sums = code_bits * (code_bits + 1) // 2 + code_bits + 1
    return random_bytes((n_open * code_bits * row_bits + n_sums * sum_bits + 7) // 8)


def _bits_for(largest: int) -> int:
    """Bits for sums from -largest to +largest: ceil(log2(2 largest + 1))."""
    return (2 * largest).bit_length()


@dataclass
class CapturingRun(TrainingRun):
    """A training run that keeps what the attacker sees, and the truth, round by round."""

    mode: str = "clear"
    views: list[RoundView] = field(default_factory=list)
    codes: list[dict[int, Signs]] = field(default_factory=list)
    rows: list[dict[int, Ints]] = field(default_factory=list)
    last_bystanders: Signs | None = None

    def _round(self, round_index: int) -> None:
        rng = np.random.default_rng([self.options.seed, round_index, 3])
        cohort = self.cohort(round_index)
        if round_index == self.options.rounds - 1:
            self.last_bystanders = self.bystanders(cohort)
        view, codes, rows, uploads = self.observe(cohort, rng)
        for upload in uploads:
            self.server.add(upload)
        self.server.finish_round()
        if self.mode == "secagg":
            view = replace(view, uploads=self._masked(view, rng))
            self.views = [replace(earlier, uploads=()) for earlier in self.views]
        self.views.append(replace(view, after=self.server.signs()))
        self.codes.append(codes)
        self.rows.append(rows)

    def observe(
        self, cohort: Ints, rng: np.random.Generator
    ) -> tuple[RoundView, dict[int, Signs], dict[int, Ints], list[bytes]]:
        """Let a cohort upload for the current model; nothing is aggregated, and `after` is `before`.

        Under secagg the view has no uploads yet. The last of what is returned is them in the clear, for the server.
        """
        model, message = self.published(), self.server.model()
        users = [int(user) for user in cohort]
        devices = [self.fleet.devices[user] for user in users]
        uploads = [device.take_part(model, rng.bytes) for device in devices]
        reader = UploadReader(message, self.server.open_rows_bitmap())
        read = [reader.read(upload) for upload in uploads]
        total = sum_uploads(message, read, self.server.n_items)
        codes = {
            user: unpack_signs(device.code.reveal(), (message.code_bits,))
            for user, device in zip(users, devices, strict=True)
        }
        rows = {user: upload.item_indices.astype(np.int64) for user, upload in zip(users, read, strict=True)}
        open_rows, before = self.server.open_rows.copy(), self.server.signs()
        seen = () if self.mode == "secagg" else tuple(uploads)
        view = RoundView(before, before, message, open_rows, tuple(users), seen, total)
        return view, codes, rows, uploads

    def bystanders(self, cohort: Ints) -> Signs:
        """Codes of devices outside the cohort for the current model, in random order, at most as many as inside."""
        model = self.published()
        outside = np.setdiff1d(np.arange(len(self.fleet)), cohort)
        drawn = np.random.default_rng([self.options.seed, 31, len(cohort)]).permutation(outside)[: len(cohort)]
        devices = [self.fleet.devices[user] for user in drawn.tolist()]
        codes = [fit_for_round(model, device.interactions, device.code).reveal() for device in devices]
        return unpack_signs(b"".join(codes), (len(codes), self.server.code_bits))

    def _masked(self, view: RoundView, rng: np.random.Generator) -> tuple[bytes, ...]:
        n_open, n_devices = int(np.count_nonzero(view.open_rows)), len(view.devices)
        return tuple(
            masked_upload_stand_in(n_open, self.server.code_bits, n_devices, rng.bytes) for _ in range(n_devices)
        )


def split_capture(run: CapturingRun, ratings: Ratings, name: str, seed: int) -> tuple[Capture, Truth]:
    """The finished run, parted into what the attacker has and what attacks are scored by."""
    items, steps, levels = _by_user(run.fleet)
    colluders = choose_colluders(len(run.fleet), seed)
    took_part = {user for codes in run.codes for user in codes}
    known = set(colluders)
    scored = tuple(sorted(took_part - known))
    truth = Truth(items, steps, tuple(run.codes), tuple(run.rows), scored, run.last_bystanders)
    colluder_codes = tuple(
        np.array([code for user, code in codes.items() if user in known], np.int8).reshape(-1, run.server.code_bits)
        for codes in run.codes
    )
    known_items, known_steps = ({user: column[user] for user in colluders} for column in (items, steps))
    knowledge = Knowledge(levels, colluders, known_items, known_steps, colluder_codes)
    return Capture(name, tuple(run.views), ratings.item_counts(), len(run.fleet), knowledge), truth


def choose_colluders(n_users: int, seed: int) -> tuple[int, ...]:
    """Devices that work for the attacker: 5 %, at least four."""
    count = min(n_users, max(FEWEST_COLLUDERS, round(COLLUDING_SHARE * n_users)))
    return tuple(sorted(np.random.default_rng([seed, 11]).choice(n_users, count, replace=False).tolist()))


def _by_user(fleet: Fleet) -> tuple[tuple[Ints, ...], tuple[Ints, ...], tuple[int, ...]]:
    arrays = [device.interactions.arrays() for device in fleet.devices]
    levels = np.unique(np.concatenate([np.array(levels, np.int64) for _, levels in arrays]))
    items = tuple(np.array(indices, np.int64) for indices, _ in arrays)
    steps = tuple(np.searchsorted(levels, np.array(values, np.int64)) for _, values in arrays)
    return items, steps, tuple(levels.tolist())
