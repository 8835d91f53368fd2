"""What `bench load --privacy secagg` is asked for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SecureLoad:
    """What is asked of the coordinator."""

    cohort: int = 512
    open_rows: int = 2000
    rounds: int = 3
    dropout: float = 0.05
    processes: int = 2
    # Of each phase: so long it waits for those who have left.
    deadline_seconds: float = 30.0
    # A PostgreSQL without tables of a coordinator, and the most replicas on it.
    database: str | None = None
    replicas: int = 1
