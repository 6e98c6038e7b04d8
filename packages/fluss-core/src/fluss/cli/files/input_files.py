"""The files that an import reads: names, globs and folders on the command line, in a fixed order.

The same words give the same files in the same order as long as no file comes or goes; with their
sizes and times of change they identify the input of an import that is continued. In a folder,
`day=2026-01-01` in the path of a file is a column, as Hive, Spark and DuckDB write them.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from fluss.cli.files.byte_sources import STANDARD
from fluss.cli.files.file_formats import format_of
from fluss.cli.files.format_names import FileFormat
from fluss.errors import InvalidValueError, LimitExceededError
from fluss.model.did_you_mean import did_you_mean

FILES_MAX: Final = 100_000
HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN: Final = (".", "_")  # Spark writes `_SUCCESS` and `.part-0.crc` beside its files


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file of an import.

    Attributes:
        file: Its path, or `-`.
        file_format: Its format.
        folder_values: The columns that its folders name, as texts; None is NULL.
        size: Its bytes; 0 for a pipe.
        changed_ns: When it was last changed; 0 for a pipe.
    """

    file: str
    file_format: FileFormat
    folder_values: Mapping[str, str | None] = field(default_factory=dict)
    size: int = 0
    changed_ns: int = 0

    @property
    def is_file(self) -> bool:
        """Whether it can be read again: not a pipe."""
        return self.changed_ns > 0


def input_files(words: Sequence[str], chosen: FileFormat | None) -> list[InputFile]:
    """Return the files that the words of a command line name.

    Args:
        words: Paths, globs (`**` for folders in folders), folders, or `-`.
        chosen: The format of all files; by their names otherwise.

    Raises:
        InvalidValueError: A word names no file, or two words name the same one.
        LimitExceededError: There are more than `FILES_MAX`.
    """
    found: list[InputFile] = []
    seen: set[str] = set()
    for word in words:
        for path, relative in _paths_of(word):
            if (real := os.path.realpath(path)) in seen and path != STANDARD:
                raise InvalidValueError(
                    f"{path} is named twice, and its rows would be written twice.",
                    hint="leave one of the names out",
                )
            seen.add(real)
            found.append(_input_file(path, relative, chosen))
            if len(found) > FILES_MAX:
                raise LimitExceededError(
                    f"{word} has more than {FILES_MAX:,} files.", hint="import it in parts"
                )
    return found


def hive_part(name: str, value: str | None) -> str:
    """Return the name of the folder of one value of a partition column."""
    return f"{_quoted(name)}={HIVE_NULL if value is None else _quoted(value)}"


def _quoted(text: str) -> str:
    return quote(text, safe=" ,+-@")


def _paths_of(word: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a word, and their paths beneath the folder that the word names."""
    if word == STANDARD or (os.path.exists(word) and not os.path.isdir(word)):  # noqa: PTH110, PTH112 - a pipe exists, too
        yield word, ""
    elif os.path.isdir(word):  # noqa: PTH112 - words are texts
        yield from _files_beneath(word)
    elif glob.has_magic(word):
        yield from _matching(word)
    else:
        near = did_you_mean(Path(word).name, _names_beside(word))
        raise InvalidValueError(f"There is no file {word}.", hint=near)


def _files_beneath(folder: str) -> Iterator[tuple[str, str]]:
    is_empty = True
    for base, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(each for each in folders if not each.startswith(_HIDDEN))
        for name in sorted(each for each in names if not each.startswith(_HIDDEN)):
            is_empty = False
            path = os.path.join(base, name)  # noqa: PTH118 - as the user wrote it
            yield path, os.path.relpath(base, folder)
    if is_empty:
        raise InvalidValueError(f"The folder {folder} has no files.")


def _refuse_folder(error: OSError) -> None:
    raise InvalidValueError(
        f"The folder {error.filename} cannot be read: {error.strerror}."
    ) from None


def _matching(pattern: str) -> Iterator[tuple[str, str]]:
    fixed = pattern[: glob.magic_check.search(pattern).start()]  # type: ignore[attr-defined]
    root = os.path.dirname(fixed)  # noqa: PTH120 - as the user wrote it
    is_empty = True
    named = Path(pattern).name.startswith(_HIDDEN)
    for path in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - absolute patterns, too
        if Path(path).name.startswith(_HIDDEN) and not named:
            continue
        within = os.path.dirname(os.path.relpath(path, root or "."))  # noqa: PTH120
        if os.path.isdir(path):  # noqa: PTH112
            if "**" in pattern or next(Path(path).iterdir(), None) is None:
                continue  # `**` names the files in it as well
            for file, beneath in _files_beneath(path):
                is_empty = False
                yield file, os.path.join(within, Path(path).name, beneath)  # noqa: PTH118
            continue
        is_empty = False
        yield path, within
    if is_empty:
        raise InvalidValueError(
            f"No file matches {pattern}.", hint="put the pattern in quotes, and use ** for folders"
        )


def _input_file(path: str, relative: str, chosen: FileFormat | None) -> InputFile:
    file_format = format_of(path, chosen)
    if path == STANDARD or not Path(path).is_file():
        return InputFile(file=path, file_format=file_format)
    status = Path(path).stat()
    return InputFile(
        file=path,
        file_format=file_format,
        folder_values=dict(_folder_values(relative)),
        size=status.st_size,
        changed_ns=status.st_mtime_ns,
    )


def _folder_values(relative: str) -> Iterator[tuple[str, str | None]]:
    for part in Path(relative).parts:
        name, sign, value = part.partition("=")
        if sign and name:
            yield unquote(name), None if value == HIVE_NULL else unquote(value)


def _names_beside(path: str) -> list[str]:
    try:
        return [each.name for each in Path(path).parent.iterdir()]
    except OSError:
        return []
