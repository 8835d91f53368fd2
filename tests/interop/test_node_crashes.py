"""The coordinator in TypeScript is killed, without a warning, and goes on where it was."""

from lightfr.v1 import coordinator_pb2
from lightfr_harness.simulation.remote import STAGES
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
    walks = [devices.walk(user) for user in range(DEVICES)]
    for step, _ in enumerate(STAGES, start=1):
        for walk in walks[:3]:
            walk.advance()
        crash(server)
        for walk in walks[3:]:
            walk.advance()
        if step < len(STAGES):
            crash(server)
    devices.next_version()
    assert devices.codes == codes_without_a_crash(kit, cohort, tmp_path)


def codes_without_a_crash(kit, cohort, tmp_path):
    """What our own server makes of the same round."""
    with python_coordinator(kit, tmp_path / "ours") as server:
        devices = cohort(DEVICES, kit, server)
        devices.train()
        return devices.codes
