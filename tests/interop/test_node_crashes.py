"""The coordinator in TypeScript is killed, without a warning, and goes on where it was."""

import os

from lightfr._wire import coordinator, secure
from lightfr.privacy import DeviceSession, round_vector
from lightfr.v1 import coordinator_pb2, model_pb2
from tests.interop.servers import python_coordinator
from tests.interop.test_node_training import DEVICES, UNHURRIED


def crash(server):
    """Kill it in the middle of writing a line that nobody was answered for, and start it again."""
    server.kill()
    with (server.state / "round.jsonl").open("ab") as journal:
        journal.write(b'{"type":"delivery","device":"')
    server.start()


def test_uploads_that_were_acknowledged_are_counted_after_a_kill(node, cohort, tmp_path):
    kit, server = node("clear", **UNHURRIED)
    devices = cohort(DEVICES, kit, server)
    for user in range(DEVICES):
        round_id = devices.upload_clear(user)
        if user < DEVICES - 1:
            crash(server)
            status = devices.status(user, round_id)
            assert (status.state, status.upload_count) == (coordinator_pb2.ROUND_STATE_OPEN, user + 1)
            assert status.has_your_upload
    devices.next_version()
    crash(server)
    assert devices.status(0, round_id).next_model_version == 2
    assert devices.codes == codes_without_a_crash(kit, cohort, tmp_path)


def test_a_round_of_secure_aggregation_survives_a_kill_after_every_step(node, cohort, tmp_path):
    kit, server = node("secagg", **UNHURRIED)
    devices = cohort(DEVICES, kit, server)
    parts = [Part(devices, user) for user in range(DEVICES)]
    for step in (Part.advertise, Part.share, Part.upload, Part.reveal):
        for part in parts[:3]:
            step(part)
        crash(server)
        for part in parts[3:]:
            step(part)
        if step is not Part.reveal:
            crash(server)
    devices.next_version()
    assert devices.codes == codes_without_a_crash(kit, cohort, tmp_path)


def codes_without_a_crash(kit, cohort, tmp_path):
    """What our own server makes of the same round."""
    with python_coordinator(kit, tmp_path / "ours") as server:
        devices = cohort(DEVICES, kit, server)
        is_clear = devices.model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR
        devices.train_clear() if is_clear else devices.train_secure()
        return devices.codes


class Part:
    """One device in a round of secure aggregation, one step at a time."""

    def __init__(self, cohort, user):
        self.cohort, self.channel, self.update = cohort, cohort.channels[user], cohort.update(user)
        self.user = user

    def advertise(self):
        self.assignment = self.cohort.check_in(self.user, model_pb2.PRIVACY_MODE_SECAGG)
        self.round_id = self.assignment.round_id
        key = self.cohort.model.manifest.signing_key
        self.session = DeviceSession(self.round_id, self.assignment.peer_id, key, minimum_cohort=3)
        secure.send(self.channel, "AdvertiseKeys", secure.encode_keys(self.round_id, self.session.advertise()))

    def share(self):
        step = self.due(secure.Share)
        shares = self.session.share(step.roster, step.signature)
        secure.send(self.channel, "ShareKeys", secure.encode_shares(step.roster, shares))

    def upload(self):
        step = self.due(secure.Upload)
        inbox = secure.inbox(step, self.session.neighbours(), self.session.peer_id)
        vector = round_vector(self.cohort.model.published, self.update, self.session.cohort)
        masked = self.session.mask(vector, inbox, step.included)
        sha256 = self.assignment.manifest_sha256
        coordinator.upload(self.channel, secure.encode_masked(self.round_id, sha256, os.urandom(16), masked))

    def reveal(self):
        step = self.due(secure.Reveal)
        revealed = self.session.unmask(step.survivors, step.signature)
        secure.send(self.channel, "RevealShares", secure.encode_revealed(self.round_id, revealed))

    def due(self, kind):
        step = secure.next_step(self.channel, self.round_id)
        assert isinstance(step, kind)
        return step
