"""Device profiles: figures with units and the source of each, in TOML. Ours lie in `profiles/`, others have a path."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from lightfr.errors import InvalidInputError

MIB = 2**20


@dataclass(frozen=True)
class Profile:
    """What a device grants the app, and what its user bears. Sizes in MiB are 2^20 bytes; rates are bits a second."""

    name: str
    description: str
    # Memory of the app's process. Mapped files that can be read again do not count where a cgroup enforces this.
    memory_mib: float
    # Share of one core of the device that the app may use.
    cpu_quota: float
    # Speed of that core, as a multiple of a core of the machine that emulates it.
    relative_speed: float
    up_bits_per_second: float
    down_bits_per_second: float
    # From one end to the other, each way.
    delay_ms: float
    # Share of segments that are lost and sent again.
    loss: float
    storage_mib: float
    recommend_ms: float
    fit_ms: float
    round_ms: float
    up_mib_per_day: float
    down_mib_per_day: float
    # For estimates of energy: of the core under load, of 10^6 bytes, and of the radio from waking to sleeping.
    core_watts: float
    up_joules_per_mb: float
    down_joules_per_mb: float
    wake_joules: float
    # 0 without a battery.
    battery_wh: float
    # By name of the figure. An estimate says that it is one.
    sources: dict[str, str]

    @property
    def memory_bytes(self) -> int:
        return round(self.memory_mib * MIB)

    @property
    def core_share(self) -> float:
        """Share of a core of this machine that the device gets."""
        return self.cpu_quota * self.relative_speed

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


FIGURES = tuple(field.name for field in fields(Profile) if field.name not in ("name", "description", "sources"))
# The least and the most that makes sense, where it is not "above zero".
_RANGES = {
    "cpu_quota": (0.01, 1.0),
    "relative_speed": (0.01, 100.0),
    "delay_ms": (0.0, 60_000.0),
    "loss": (0.0, 0.5),
    "battery_wh": (0.0, 1e6),
}
_ABOVE_ZERO = (1e-6, 1e15)


def profile_names() -> list[str]:
    """The profiles that come with the harness, smallest memory first."""
    return sorted(_names(), key=lambda name: load_profile(name).memory_mib)


def load_profile(name_or_path: str | Path) -> Profile:
    """One of `profile_names()`, or a TOML file. Raises InvalidInputError."""
    given = str(name_or_path)
    is_path = given.endswith(".toml")
    entry = Path(given) if is_path else _folder() / f"{given}.toml"
    # A name with a separator would lead out of the folder.
    if not entry.is_file() or (not is_path and Path(given).name != given):
        known = "" if is_path else f", choose one of {', '.join(_names())} or give the path of a .toml file"
        raise InvalidInputError(f"there is no profile '{given}'{known}")
    try:
        return _checked(Path(given).name.removesuffix(".toml"), tomllib.loads(entry.read_text(encoding="utf-8")))
    # Numbers of too many digits and lists nested without end have errors of their own.
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"profile '{given}' cannot be read: {error}") from error


def _folder() -> Any:
    # A folder of data in the package, also where that is installed as an archive.
    return resources.files("lightfr_harness.devices") / "profiles"


def _names() -> list[str]:
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def _checked(name: str, table: dict[str, Any]) -> Profile:
    expected = {*FIGURES, "description", "sources"}
    if wrong := sorted(expected - table.keys()):
        raise InvalidInputError(f"profile '{name}' lacks {', '.join(wrong)}")
    if wrong := sorted(table.keys() - expected):
        raise InvalidInputError(f"profile '{name}' has figures that nobody knows: {', '.join(wrong)}")
    for figure in FIGURES:
        _require_figure(name, figure, table[figure])
    _require_texts(name, table["description"], table["sources"])
    return Profile(name=name, **table)


def _require_figure(name: str, figure: str, value: Any) -> None:
    least, most = _RANGES.get(figure, _ABOVE_ZERO)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise InvalidInputError(f"profile '{name}': {figure} is {value!r}; give a number from {least:g} to {most:g}")


def _require_texts(name: str, description: Any, sources: Any) -> None:
    if not isinstance(description, str) or not isinstance(sources, dict):
        raise InvalidInputError(f"profile '{name}': description must be a text and sources a table")
    without = [figure for figure in FIGURES if not isinstance(sources.get(figure), str) or not sources[figure].strip()]
    if without:
        missing = f"profile '{name}' gives no source of {', '.join(without)}"
        raise InvalidInputError(f"{missing}: name it, or say 'estimate: why'")
    if unknown := sorted(sources.keys() - set(FIGURES)):
        raise InvalidInputError(f"profile '{name}' has sources of figures that nobody knows: {', '.join(unknown)}")
