from lightfr_harness.bench import accuracy, rounds
from lightfr_harness.data import generate


def test_a_small_run_reports_times_by_ratings_items_and_devices(monkeypatch):
    monkeypatch.setattr(rounds, "RATINGS", (8, 32))
    monkeypatch.setattr(rounds, "ITEMS", (200, 400))
    monkeypatch.setattr(rounds, "DEVICES", (2, 4))
    record = rounds.run(16, seed=0, seconds=0)
    assert set(record.us_by_ratings) == {"8", "32"}
    assert all(us > 0 for us in record.us_by_devices.values())


def test_the_accuracy_table_says_which_rows_were_reached(monkeypatch, tmp_path):
    """On synthetic ratings in the file format of ML-100K, with rows that must and that cannot be reached."""
    ratings = generate("tiny", seed=0)
    path = tmp_path / "u.data"
    rows = zip(ratings.user_index, ratings.item_index, ratings.rating, ratings.timestamp, strict=True)
    path.write_text("".join(f"{u}\t{i}\t{int(r)}\t{t}\n" for u, i, r, t in rows))
    monkeypatch.setattr(accuracy, "SEEDS", (0,))
    options = {"bits": 16, "rounds": 2}
    asked = (accuracy.Row("easy", 0.01, 0.01, options), accuracy.Row("impossible", 1.01, 0.0, options, is_goal=True))
    seen = []
    record = accuracy.run(path, asked, seen.append)
    assert [row["reached"] for row in record.rows] == [True, False]
    assert seen == list(asked)
