"""What an attacker has after a training run, and, apart from it, the truth that attacks are scored by.

The attacker is the coordinator with a few colluding devices: every published matrix, every byte uploaded, who sent it,
the gate's counts, and all that the colluding devices know. `Capture` holds nothing else; an attack takes a `Capture`
(or one `RoundView`), and only the scoring beside it takes a `Truth`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lightfr import _wire
from lightfr.secagg.contribution import vector_without_noise
from lightfr.training import PublishedModel, RowUpdate, fit_for_round, taught_by
from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr.v1 import model_pb2
from lightfr_harness.data.ratings import Ratings
from lightfr_harness.server.rules import CatalogueRule, UploadReader
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.server.rules.uploads import Upload
from lightfr_harness.simulation.collecting import catalogue_of, sums_without_masks
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.secure import SecureRound
from lightfr_harness.simulation.training import TrainingRun

Signs = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

COLLUDING_SHARE = 0.05
FEWEST_COLLUDERS = 4
# One device in so many may work for the attacker, who then knows its noise: that noise is left out of all sums.
ONE_NOISELESS_IN = 5
# Attacks that need no long campaign look at the last rounds, in which the codes are most mature.
LAST_ROUNDS = 10


@dataclass(frozen=True)
class CohortSum:
    """What secure aggregation gives the coordinator: sums over a cohort. v and w are zero with objective paper."""

    rows: npt.NDArray[np.int32]
    user_sum: Ints
    weight: int
    n_devices: int


@dataclass(frozen=True)
class RoundView:
    """One round as the coordinator sees it. `uploads[j]` came from `devices[j]`.

    Under secagg it is the vector that the SDK masked, and `total` is what taking off the masks gave. Only the first
    round of a campaign is masked. Of the others there is the sum alone, made without masks, since masks take 20 ms a
    device: it differs only in the noise, which is drawn once for the sum, and not for the fifth who may collude.
    """

    before: Signs
    after: Signs
    published: PublishedModel
    """The model as every device downloads it before the round; `before` has its codes."""
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
    codes: tuple[dict[int, Signs], ...]
    """By round, the codes that those colluders fitted who took part."""

    def last_codes(self) -> dict[int, Signs]:
        """The code of each colluder's last round."""
        return {user: code for codes in self.codes for user, code in codes.items()}

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

    def last(self, rounds: int) -> Capture:
        """The same with the last rounds alone, or with all of them where there are fewer."""
        codes = self.knowledge.codes[-rounds:]
        return replace(self, rounds=self.rounds[-rounds:], knowledge=replace(self.knowledge, codes=codes))

    def participation(self) -> npt.NDArray[np.bool_]:
        """Who took part when: rounds x users."""
        return np.array([np.isin(np.arange(self.n_users), view.devices) for view in self.rounds])

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
    scored: tuple[int, ...] = ()
    """Users who took part at least once and do not collude."""
    bystanders: tuple[Signs, ...] = ()
    """By round, in the last rounds, codes that devices outside the cohort would have fitted: hit by mere luck."""

    def last(self, rounds: int) -> Truth:
        """The same with the last rounds alone."""
        return replace(self, codes=self.codes[-rounds:], bystanders=self.bystanders[-rounds:])

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
            upload.add_to(ternary, upload.item_indices)
        else:
            wide[upload.item_indices] += upload.values()
    rows = (wide + ternary).astype(np.int32)
    if view_model.objective == model_pb2.OBJECTIVE_PAPER:
        return CohortSum(rows, np.zeros(f, np.int64), 0, len(uploads))
    codes = np.array([unpack_signs(upload.rows.user_code, (f,)) for upload in uploads], np.int64).reshape(-1, f)
    weights = np.array([max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS) for upload in uploads], np.int64)
    return CohortSum(rows, weights @ codes, int(weights.sum()), len(uploads))


def sum_of_blocks(server: CatalogueRule, sums: Mapping[str, Ints], n_devices: int) -> CohortSum:
    """What taking off the masks gave, as the server counts it."""
    weighted = server.weighted(sums, n_devices)
    rows = np.zeros((server.n_items, server.code_bits), np.int32)
    rows[server.open_rows] = weighted["rows"].reshape(-1, server.code_bits)
    return CohortSum(rows, weighted["user_sum"], int(weighted["weight"][0]), n_devices)


@dataclass(frozen=True, repr=False)
class Observed:
    """One sum: what the attacker sees of it, and by device the code and the update behind it."""

    view: RoundView
    codes: dict[int, Signs]
    updates: dict[int, RowUpdate]


@dataclass
class CapturingRun(TrainingRun):
    """A training run that keeps what the attacker sees, and the truth, round by round."""

    views: list[RoundView] = field(default_factory=list)
    codes: list[dict[int, Signs]] = field(default_factory=list)
    last_bystanders: list[Signs] = field(default_factory=list)
    cohorts: tuple[Ints, ...] = ()
    """Those of all rounds, where they are drawn beforehand: `draw_cohorts`."""

    @property
    def is_secure(self) -> bool:
        return self.server.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR

    def cohort(self, round_index: int) -> Ints:
        """Devices of a round."""
        return self.cohorts[round_index] if self.cohorts else super().cohort(round_index)

    def _round(self, round_index: int) -> None:
        rng = np.random.default_rng([self.options.seed, round_index, 3])
        cohort = self.cohort(round_index)
        if round_index >= self.options.rounds - LAST_ROUNDS:
            self.last_bystanders.append(self.bystanders(cohort))
        seen = self.observe(cohort, rng, masked=round_index == 0)
        self.move(seen.view)
        self.views.append(replace(seen.view, after=self.server.signs()))
        self.codes.append(seen.codes)

    def observe(self, cohort: Ints, rng: np.random.Generator, *, masked: bool = False) -> Observed:
        """Let a cohort upload for the current model; nothing is aggregated, and `after` is `before`.

        `masked` False leaves out the masks of a secure sum: the same sum, without uploads, in a fraction of the time.
        """
        model = self.published()
        users = [int(user) for user in cohort]
        devices = [self.fleet.devices[user] for user in users]
        updates = [device.update(model, rng.bytes) for device in devices]
        uploads, total = self._received(model, updates, rng, masked=masked)
        codes = {
            user: unpack_signs(device.code.reveal(), (self.server.code_bits,))
            for user, device in zip(users, devices, strict=True)
        }
        open_rows, before = self.server.open_rows.copy(), self.server.signs()
        view = RoundView(before, before, model, self.server.model(), open_rows, tuple(users), tuple(uploads), total)
        return Observed(view, codes, dict(zip(users, updates, strict=True)))

    def move(self, view: RoundView) -> None:
        """Let the server finish a round with what it has of it."""
        if self.is_secure:
            total = view.total
            rows, weight = total.rows[self.server.open_rows].astype(np.int64), np.array([total.weight])
            catalogue_of(self.server).add_sums(rows, total.user_sum, weight)
        else:
            for upload in view.uploads:
                self.server.add(upload)
        self.server.finish_round()

    def _received(
        self, model: PublishedModel, updates: list[RowUpdate], rng: np.random.Generator, *, masked: bool
    ) -> tuple[list[bytes], CohortSum]:
        """The bytes that arrive, and the sum over the cohort."""
        if not self.is_secure:
            uploads = [_wire.encode_update(update) for update in updates]
            reader = UploadReader(self.server.model(), self.server.open_rows_bitmap())
            read = [reader.read(upload) for upload in uploads]
            return uploads, sum_uploads(self.server.model(), read, self.server.n_items)
        uploads, n = [], len(updates)
        # One device alone would decline to take part: its sum is there to show why.
        if masked and n > 1:
            sums = masked_sums(model, updates, rng, uploads)
        else:
            sums = sums_without_masks(model, updates[n // ONE_NOISELESS_IN :], n, rng)
            for update in updates[: n // ONE_NOISELESS_IN]:
                vector = vector_without_noise(model, update, n)
                for name, total in sums.items():
                    total += np.asarray(vector[name])
        return uploads, sum_of_blocks(catalogue_of(self.server), sums, n)

    def bystanders(self, cohort: Ints) -> Signs:
        """Codes of devices outside the cohort for the current model, in random order, at most as many as inside."""
        model = self.published()
        outside = np.setdiff1d(np.arange(len(self.fleet)), cohort)
        drawn = np.random.default_rng([self.options.seed, 31, len(cohort)]).permutation(outside)[: len(cohort)]
        devices = [self.fleet.devices[user] for user in drawn.tolist()]
        taught = [taught_by(model, device.interactions) for device in devices]
        codes = [fit_for_round(model, mine, each.code).reveal() for mine, each in zip(taught, devices, strict=True)]
        return unpack_signs(b"".join(codes), (len(codes), self.server.code_bits))


def draw_cohorts(n_users: int, size: int, rounds: int, rounds_per_device: int, seed: int) -> tuple[Ints, ...]:
    """The cohorts of a campaign; it ends early when too few devices are left that may take part once more."""
    rng = np.random.default_rng([seed, 43])
    left = np.full(n_users, rounds_per_device)
    cohorts: list[Ints] = []
    while len(cohorts) < rounds and np.count_nonzero(left) >= size:
        cohort = np.sort(rng.choice(np.flatnonzero(left), size, replace=False))
        left[cohort] -= 1
        cohorts.append(cohort)
    return tuple(cohorts)


def masked_sums(
    model: PublishedModel, updates: list[RowUpdate], rng: np.random.Generator, received: list[bytes]
) -> dict[str, Ints]:
    """A round of secure aggregation without dropouts; `received` gets the masked vectors, in the devices' order."""
    secure, nobody = SecureRound.of_updates(model, updates, rng.bytes), np.zeros(len(updates), np.bool_)
    secure.run(lambda phase: nobody, received)
    return secure.finish()


def split_capture(run: CapturingRun, ratings: Ratings, name: str, seed: int) -> tuple[Capture, Truth]:
    """The finished run, parted into what the attacker has and what attacks are scored by."""
    items, steps, levels = _by_user(run.published(), run.fleet)
    colluders = choose_colluders(len(run.fleet), seed)
    took_part = {user for codes in run.codes for user in codes}
    known = set(colluders)
    scored = tuple(sorted(took_part - known))
    truth = Truth(items, steps, tuple(run.codes), scored, tuple(run.last_bystanders))
    colluder_codes = tuple({user: code for user, code in codes.items() if user in known} for codes in run.codes)
    known_items, known_steps = ({user: column[user] for user in colluders} for column in (items, steps))
    knowledge = Knowledge(levels, colluders, known_items, known_steps, colluder_codes)
    return Capture(name, tuple(run.views), ratings.item_counts(), len(run.fleet), knowledge), truth


def choose_colluders(n_users: int, seed: int) -> tuple[int, ...]:
    """Devices that work for the attacker: 5 %, at least four."""
    count = min(n_users, max(FEWEST_COLLUDERS, round(COLLUDING_SHARE * n_users)))
    return tuple(sorted(np.random.default_rng([seed, 11]).choice(n_users, count, replace=False).tolist()))


def _by_user(model: PublishedModel, fleet: Fleet) -> tuple[tuple[Ints, ...], tuple[Ints, ...], tuple[int, ...]]:
    """Items and ratings that training uses: the others never leave a device in a round that is captured."""
    arrays = [taught_by(model, device.interactions).arrays() for device in fleet.devices]
    levels = np.unique(np.concatenate([np.array(levels, np.int64) for _, levels in arrays]))
    items = tuple(np.array(indices, np.int64) for indices, _ in arrays)
    steps = tuple(np.searchsorted(levels, np.array(values, np.int64)) for _, values in arrays)
    return items, steps, tuple(levels.tolist())
