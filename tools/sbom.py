"""Writes a bill of materials beside each wheel, NAME.whl.cdx.json, in the format of CycloneDX 1.6.

    python tools/sbom.py dist/*.whl

It names the wheel by its SHA-256, every compiled file in it, and every package that comes along when it is installed,
at the version of requirements/test.txt, which the tests run with. The same wheel and the same lock give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from dataclasses import dataclass, field
from email.parser import BytesParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements/test.txt"
PINNED = re.compile(r"([a-z0-9._-]+)(?:\[.*\])?==([^ ;]+)(?: ; (.*?))? \\")


@dataclass
class Package:
    """A line of the lock: its version, where it is needed, and the packages that need it."""

    name: str
    version: str
    marker: str = ""
    needed_by: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        """The package URL, by which others know it."""
        return f"pkg:pypi/{self.name}@{self.version}"

    def component(self) -> dict[str, Any]:
        """Return its entry in the bill."""
        entry = {"type": "library", "bom-ref": self.purl, "name": self.name, "version": self.version, "purl": self.purl}
        condition = [{"name": "lightfr:marker", "value": self.marker}] if self.marker else []
        return {**entry, **({"properties": condition} if condition else {})}


def normal(requirement: str) -> str:
    """Return the name in a requirement, as the lock spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement.strip())[0]).lower()


def read_lock(text: str) -> list[Package]:
    """Return the packages of a lock, with those that the comments say need them."""
    packages: list[Package] = []
    for line in text.splitlines():
        if found := PINNED.fullmatch(line):
            packages.append(Package(normal(found[1]), found[2], found[3] or ""))
        elif reason := re.fullmatch(r" +# +(?:via )?([a-z0-9._-]+)", line):
            packages[-1].needed_by.append(normal(reason[1]))
    return packages


def with_sdk(packages: list[Package]) -> list[Package]:
    """Return the packages and, since no index is asked for it, the SDK, which needs what its pyproject.toml says."""
    sdk = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = {normal(requirement) for requirement in sdk["dependencies"]}
    for package in packages:
        if package.name in direct:
            package.needed_by.append(sdk["name"])
    return [*packages, Package(sdk["name"], sdk["version"], needed_by=["lightfr-harness"])]


def bill(wheel: Path, packages: list[Package]) -> dict[str, Any]:
    """Return the bill of materials of one wheel."""
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        about = BytesParser().parsebytes(archive.read(metadata))
        compiled = {name: archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".so")}
    required = [line for line in about.get_all("Requires-Dist", []) if "extra ==" not in line]
    own = Package(normal(about["Name"]), about["Version"])
    depends = {own.purl: {package.purl for package in packages if package.name in set(map(normal, required))}}
    by_purl = {package.purl: package for package in packages}
    waiting = list(depends[own.purl])
    while waiting:
        purl = waiting.pop()
        if purl not in depends:
            name = by_purl[purl].name
            depends[purl] = {package.purl for package in packages if name in package.needed_by}
            waiting += depends[purl]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                **own.component(),
                "licenses": [{"expression": about["License-Expression"]}],
                "hashes": [sha256(wheel.read_bytes())],
                "components": [
                    {"type": "file", "name": name, "hashes": [sha256(content)]} for name, content in compiled.items()
                ],
                "properties": [{"name": "lightfr:requires", "value": line} for line in sorted(required)],
            }
        },
        "components": [by_purl[purl].component() for purl in sorted(depends) if purl != own.purl],
        "dependencies": [{"ref": purl, "dependsOn": sorted(depends[purl])} for purl in sorted(depends)],
    }


def sha256(content: bytes) -> dict[str, str]:
    """Return a hash as CycloneDX writes it."""
    return {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}


def main(wheels: list[str]) -> None:
    """Write the bill of each wheel."""
    packages = with_sdk(read_lock(LOCK.read_text()))
    for wheel in map(Path, wheels):
        wheel.with_name(f"{wheel.name}.cdx.json").write_text(json.dumps(bill(wheel, packages), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
