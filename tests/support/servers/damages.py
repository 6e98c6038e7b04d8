"""Random damage to a data directory, as disks, people and backup programs cause it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

_ROOT_FILES = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "ledger", "LOCK")
_DIRECTORIES = (
    ("data", re.compile(r"data")),
    ("bucket log", re.compile(r"log-\d+")),
    ("rows by key", re.compile(r"kv-\d+")),
    ("partition", re.compile(r".+-p\d+")),
    ("table", re.compile(r".+-\d+")),
)

REPLACED_RATE = 0.25


@dataclass(frozen=True, slots=True)
class Damage:
    """A damage that was done.

    Args:
        what: A description.
        paths: The changed files or directories.
    """

    what: str
    paths: tuple[Path, ...]


def kind_of(path: Path, root: Path) -> str:
    """Return the kind of a file or directory of a data directory."""
    if path.is_dir():
        return next((kind for kind, name in _DIRECTORIES if name.fullmatch(path.name)), "database")
    if path.parent == root:
        return path.name
    if path.parent.name.startswith("kv-"):
        return "kv " + (path.suffix or path.name.split("-")[0])
    return path.suffix or path.name


def targets(root: Path) -> dict[str, list[Path]]:
    """Return all files and directories that can be damaged, by kind."""
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        found.setdefault(kind_of(path, root), []).append(path)
    return found


def damage(root: Path, chance: Random, copies: Sequence[Path] = ()) -> Damage:
    """Damage one file or directory of a data directory.

    Args:
        root: The directory.
        chance: The source of randomness.
        copies: Other directories: earlier states of this one, and foreign ones.
    """
    by_kind = targets(root)
    kind = chance.choice(sorted(by_kind))
    path = chance.choice(by_kind[kind])
    others = [other for other in by_kind[kind] if other != path]
    if path.is_dir():
        actions: Sequence[Callable[..., Damage]] = (_delete, _delete, _duplicate_directory, _swap)
    else:
        actions = (_flip, _flip, _cut, _zero, _delete, _duplicate, _swap)
    action = chance.choice(actions)
    if action is _swap and not others:
        action = _delete
    sources = [source for copy in copies if (source := copy / path.relative_to(root)).exists()]
    if sources and chance.random() < REPLACED_RATE:
        done = _replace(path, chance.choice(sources))
    else:
        done = action(path, others, chance)
    return Damage(f"{kind}: {done.what}", done.paths)


def _flip(path: Path, _: Sequence[Path], chance: Random) -> Damage:
    data = bytearray(path.read_bytes())
    if not data:
        return _delete(path, (), chance)
    at = chance.randrange(len(data))
    bit = chance.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return Damage(f"bit {bit} of byte {at} of {path} of {len(data)} flipped", (path,))


def _cut(path: Path, _: Sequence[Path], chance: Random) -> Damage:
    size = path.stat().st_size
    if not size:
        return _delete(path, (), chance)
    kept = chance.choice([0, size - 1, chance.randrange(size), chance.randrange(size)])
    with path.open("r+b") as file:
        file.truncate(kept)
    return Damage(f"{path} of {size} bytes cut to {kept}", (path,))


def _zero(path: Path, _: Sequence[Path], chance: Random) -> Damage:
    data = bytearray(path.read_bytes())
    if not data:
        return _delete(path, (), chance)
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice([1, 16, 512, 4096, len(data)]))
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    return Damage(f"bytes {start} to {end} of {path} zeroed", (path,))


def _delete(path: Path, _: Sequence[Path], __: Random) -> Damage:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return Damage(f"{path} deleted", (path,))


def _duplicate(path: Path, others: Sequence[Path], chance: Random) -> Damage:
    data = path.read_bytes()
    how = chance.choice(["appended", "over another", "another name"])
    if how == "over another" and others:
        other = chance.choice(others)
        other.write_bytes(data)
        return Damage(f"{path} copied over {other}", (other, path))
    if how == "another name":
        number = re.search(r"\d+", path.name)
        name = f"{path.name}.copy"
        if number is not None:
            digits = number.group()
            changed = f"{max(int(digits) + chance.randrange(-3, 4), 0):0{len(digits)}d}"
            name = path.name.replace(digits, changed, 1)
        target = path.with_name(name)
        shutil.copyfile(path, target) if target != path else None
        return Damage(f"{path} copied to {target}", (target, path))
    path.write_bytes(data + data)
    return Damage(f"{path} appended to itself", (path,))


def _duplicate_directory(path: Path, others: Sequence[Path], chance: Random) -> Damage:
    if others and chance.random() < 0.5:
        other = chance.choice(others)
        if not other.is_relative_to(path) and not path.is_relative_to(other):
            shutil.rmtree(other)
            shutil.copytree(path, other)
            return Damage(f"{path} copied over {other}", (other, path))
    target = path.with_name(re.sub(r"\d+$", lambda n: str(int(n.group()) + 7), path.name))
    if target == path:
        target = path.with_name(f"{path.name}_copy")
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(path, target)
    return Damage(f"{path} copied to {target}", (target, path))


def _replace(path: Path, source: Path) -> Damage:
    """Replace a file or directory with that of another directory or of an earlier state."""
    if path.is_dir():
        shutil.rmtree(path)
        shutil.copytree(source, path)
    else:
        shutil.copyfile(source, path)
    return Damage(f"{path} replaced by {source}", (path,))


def _swap(path: Path, others: Sequence[Path], chance: Random) -> Damage:
    other = chance.choice(others)
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)
    return Damage(f"{path} and {other} exchanged", (path, other))
