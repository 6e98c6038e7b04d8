"""After any damage a server serves exactly what was acknowledged, or refuses and names a file.

A process fills data directories and is killed or stops cleanly. The directories are copied, damaged
in one random way, and served again. `./dev prove damage` does this some thousand times.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

import pytest

from fluss.errors import FlussError
from fluss.wire import messages as pb
from fluss_server.server_config import Durability
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.damage_world import DATABASE, EARLIER, Refused, World, filled, look
from tests.support.servers.damages import Damage, damage
from tests.support.servers.embedded import Clock, running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection

# The durability of the servers that filled a directory, and how each of them ended.
HISTORIES = (
    ("process", "kill"),
    ("process", "clean"),
    ("disk", "clean", "kill"),
    ("disk", "kill", "clean"),
    ("none", "kill", "kill"),
    ("process", "clean", "clean", "kill"),
)
# Its tables have the same names and ids.
FOREIGN = HISTORIES[1]
CASES = 520 if IS_EXHAUSTIVE else 30
USED = HISTORIES if IS_EXHAUSTIVE else HISTORIES[1:3]
SHARDS = 4 if IS_EXHAUSTIVE else 1
START_AGAIN_RATE = 0.2
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
REPAIR_CASES = 200 if IS_EXHAUSTIVE else 5
REPAIR_SHARDS = 4 if IS_EXHAUSTIVE else 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for copies, in memory where the system has one."""
    if not os.access(IN_MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("damage")
        return
    with tempfile.TemporaryDirectory(prefix="fluss-damage-", dir=IN_MEMORY) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def worlds(folder):
    """Filled directories by their histories, filled on first use."""
    made: dict[tuple[str, ...], tuple[Path, World]] = {}

    def world(history):
        if history not in made:
            (folder / "-".join(history)).mkdir()
            made[history] = filled(folder / "-".join(history), history)
        return made[history]

    return world


@pytest.mark.slow  # fills directories in processes that are killed
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("history", USED, ids=" ".join)
def test_a_damaged_directory_is_served_exactly_or_refused_by_name(folder, worlds, history, shard):
    directory, world = worlds(history)
    copies = [directory.with_name(directory.name + EARLIER), worlds(FOREIGN)[0]]
    counts = {"exact": 0, "refused start": 0, "refused requests": 0}
    differences = []
    for case in range(shard, CASES, SHARDS):
        chance = Random(f"{history} {case}")
        copy = folder / f"case-{case}"
        shutil.copytree(directory, copy)
        done = damage(copy, chance, copies)
        outcome, problems = _serve(copy, world, done, history[0], again=chance.random())
        counts[outcome] += 1
        differences += [f"case {case}, {done.what}: {problem}" for problem in problems]
        shutil.rmtree(copy)
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    sys.stderr.write(f"{' '.join(history)}: {said}, {len(differences)} silent differences\n")
    assert not differences, "\n".join(differences[:20])


def _serve(
    directory: Path, world: World, done: Damage, durability: str, *, again: float
) -> tuple[str, list[str]]:
    clock = Clock(world.now_ms)
    outcome = "exact"
    problems: list[str] = []
    for attempt in range(2 if again < START_AGAIN_RATE else 1):
        try:
            with running(directory, clock=clock, durability=Durability(durability)) as server:
                connection = RawConnection(server.address)
                try:
                    seen = look(world, connection)
                    found, refused = _compare(world.seen, seen, done, directory)
                    problems += [f"start {attempt}: {each}" for each in found]
                    outcome = "refused requests" if refused else outcome
                    problems += _go_on(world, connection, has_refusals=refused)
                finally:
                    connection.close()
        except FlussError as error:
            if not _names(str(error), done, directory):
                problems.append(f"start {attempt} is refused without a name: {error}")
            return "refused start", problems
    return outcome, problems


def _compare(expected, seen, done: Damage, directory: Path) -> tuple[list[str], bool]:
    problems, refused = [], False
    for key, value in expected.items():
        found = seen.get(key)
        if found == value:
            continue
        if isinstance(found, Refused):
            refused = True
            if not _names(found.message, done, directory):
                problems.append(f"{key} is refused without a name: {found.message}")
        else:
            problems.append(f"{key} is {str(found)[:300]} and was {str(value)[:300]}")
    return problems, refused


def _names(message: str, done: Damage, directory: Path) -> bool:
    """Return whether a refusal names the damaged file, or one beside it or in it."""
    if any(str(path) in message for path in done.paths):
        return True
    if any(path.parent == directory for path in done.paths):
        return any(
            f"{directory}/{name}" in message for name in ("catalog.sqlite", "ledger", "data")
        )
    return any(str(path.parent) in message for path in done.paths)


def _go_on(world: World, connection: RawConnection, *, has_refusals: bool) -> list[str]:
    """Check that new tables, writers and rows get unused ids, and that duplicates are detected."""
    problems = []
    writer = connection.call(pb.InitWriterRequest()).writer_id
    if writer <= world.writer:
        problems.append(f"writer id {writer} is given again")
    table = LogTable(connection, f"fresh_{writer}")
    if table.id <= max(world.ids.values()):
        problems.append(f"table id {table.id} is given again")
    if table.fetch().high_watermark or table.produce().base_offset:
        problems.append("a new table has rows")
    connection.call(pb.DropTableRequest(table_path=table.path, ignore_if_not_exists=False))
    for (table_id, partition, bucket), (batch, base_offset) in world.last_sent.items():
        request = pb.ProduceLogRequest(acks=-1, table_id=table_id, timeout_ms=1_000)
        request.buckets_req.add(bucket_id=bucket, partition_id=partition, records=batch)
        (answer,) = connection.call(request).buckets_resp
        if answer.HasField("error_code"):
            if not has_refusals:
                problems.append(f"a batch of before is refused: {answer.error_message}")
        elif answer.base_offset != base_offset:
            problems.append(f"{table_id}/{partition}/{bucket}: a batch of before is taken again")
    return problems


@pytest.mark.slow  # fills a directory in processes that are killed
@pytest.mark.parametrize("shard", range(REPAIR_SHARDS))
def test_a_repaired_directory_serves_what_is_left_of_each_log(folder, worlds, shard):
    """Rows may be given up, with a report; none may differ or move."""
    history = USED[-1]
    directory, world = worlds(history)
    copies = [directory.with_name(directory.name + EARLIER), worlds(FOREIGN)[0]]
    for case in range(shard, REPAIR_CASES, REPAIR_SHARDS):
        chance = Random(f"repair {case}")
        copy = folder / f"case-{case}"
        shutil.copytree(directory, copy)
        done = damage(copy, chance, copies)
        clock = Clock(world.now_ms)
        with running(copy, clock=clock, repair=True) as server:
            connection = RawConnection(server.address)
            seen = look(world, connection)
            connection.close()
        for key, value in world.seen.items():
            if key[0] == "log" and isinstance(seen.get(key), tuple):
                known = {batch[0]: batch for batch in value[2]}
                for batch in seen[key][2]:
                    assert known.get(batch[0]) == batch, (case, done.what, key)
        with running(copy, clock=clock) as server:  # and it stays whole
            pass
        shutil.rmtree(copy)


def test_an_undamaged_directory_is_served_exactly(folder, worlds):
    for history in USED[:1]:
        directory, world = worlds(history)
        copy = folder / "copy"
        shutil.copytree(directory, copy)
        outcome, problems = _serve(copy, world, Damage("nothing", ()), history[0], again=0)
        assert (outcome, problems) == ("exact", [])
        assert DATABASE in world.seen["databases"]
