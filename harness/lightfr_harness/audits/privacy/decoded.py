"""Everything that clear uploads say, decoded once for the audits that need it: codes by round, evidence by user."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from lightfr.v1 import model_pb2
from lightfr_harness.audits.capture import Capture, Floats, Signs
from lightfr_harness.audits.privacy import mirrors, rank_one


@dataclass(frozen=True)
class Decoded:
    """Codes of every device by round; with objective paper also the levels, turned the likelier way."""

    codes: tuple[dict[int, Signs], ...]
    users: dict[int, mirrors.Evidence] = field(default_factory=dict)
    mirrored: dict[int, bool] = field(default_factory=dict)
    level_counts: Floats | None = None


def decode_capture(capture: Capture) -> Decoded:
    """Decode all clear uploads. O(uploads x rows x f)."""
    by_round = [
        [rank_one.decode(view, device, upload, capture.knowledge.levels) for device, upload in view.read()]
        for view in capture.rounds
    ]
    if not capture.rounds or capture.rounds[0].model.objective == model_pb2.OBJECTIVE_CATALOGUE:
        return Decoded(tuple({upload.device: upload.code for upload in uploads} for uploads in by_round))
    return _orient(by_round, capture)


def _orient(by_round: list[list[rank_one.DecodedUpload]], capture: Capture) -> Decoded:
    by_user: dict[int, list[rank_one.DecodedUpload]] = defaultdict(list)
    for upload in (upload for uploads in by_round for upload in uploads if len(upload.items)):
        by_user[upload.device].append(upload)
    n_items = len(capture.item_counts)
    users = {user: mirrors.merge_rounds(uploads, n_items) for user, uploads in by_user.items()}
    turned, counts = mirrors.orient(list(users.values()), capture.knowledge, n_items)
    mirrored = dict(zip(users, turned, strict=True))
    flips = {user: iter(evidence.flipped) for user, evidence in users.items()}
    codes = tuple(
        {
            upload.device: -upload.code if next(flips[upload.device]) != mirrored[upload.device] else upload.code
            for upload in uploads
            if len(upload.items)
        }
        for uploads in by_round
    )
    return Decoded(codes, users, mirrored, counts)
