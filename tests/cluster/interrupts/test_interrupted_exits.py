"""A process that was interrupted ends soon and quietly, also with rows still to be delivered."""

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

import fluss
from fluss_server import LocalCluster

# A second on an idle machine, and more for pytest's report; without an interrupt it is 25.
EXIT_S_MAX = 15.0

SETUP = """
import os, signal, sys, threading, time
import asyncio, fluss, fluss.aio
import polars
URL, PID = sys.argv[1], int(sys.argv[2])
ROWS = [{"id": number} for number in range(1_000)]
CONFIG = {"bootstrap.servers": URL.removeprefix("fluss://")}
def hang(after_s=0.2):
    os.kill(PID, signal.SIGSTOP)
    threading.Thread(target=interrupt, args=(after_s,), daemon=True).start()
def interrupt(after_s):
    time.sleep(after_s)
    while after_s == 0 and not main_frame().f_code.co_filename.endswith("waiting.py"):
        time.sleep(0.01)
    print(time.monotonic(), flush=True)
    os.kill(os.getpid(), signal.SIGINT)
def main_frame():
    return sys._current_frames()[threading.main_thread().ident]
async def writer_of(module):
    connection = await module.FlussConnection.create(module.Config(CONFIG))
    table = await connection.get_table("d.log")
    return connection, table.new_append().create_writer()
"""
PROGRAMS = {
    "session left open": """
table = fluss.connect(URL).table("d.log")
hang()
table.append(ROWS)
""",
    "session in a with block": """
with fluss.connect(URL) as session:
    table = session.table("d.log")
    hang()
    table.append(ROWS)
""",
    "session closed in the end": """
session = fluss.connect(URL)
try:
    table = session.table("d.log")
    hang()
    table.append(ROWS)
finally:
    session.close()
""",
    "rows of a writer, interrupted elsewhere": """
connection, writer = asyncio.run(writer_of(fluss))
hang()
for row in ROWS:
    writer.append(row)
time.sleep(30)
""",
    "rows of a writer, interrupted at exit": """
connection, writer = asyncio.run(writer_of(fluss))
hang(after_s=0.5)
for row in ROWS:
    writer.append(row)
""",
    "awaited flush": """
async def main():
    connection, writer = await writer_of(fluss.aio)
    async with connection:
        hang()
        for row in ROWS:
            writer.append(row)
        await writer.flush()
asyncio.run(main())
""",
    "followed": """
follow = fluss.connect(URL).table("d.log").follow()
follow.poll(0)
hang()
for batch in follow:
    pass
""",
    "a handler that ends the process": """
signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
table = fluss.connect(URL).table("d.log")
hang()
table.append(ROWS)
""",
    "interrupted again and again": """
def again():
    for _ in range(8):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
table = fluss.connect(URL).table("d.log")
hang()
threading.Thread(target=again, daemon=True).start()
table.append(ROWS)
""",
    "pytest": """
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
import pytest
class Plugin:
    @staticmethod
    def pytest_runtest_call(item):
        table = fluss.connect(URL).table("d.log")
        hang()
        table.append(ROWS)
open("test_it.py", "w").write("def test(): pass")
sys.exit(pytest.main(["-q", "-s", "-c", "/dev/null", "-p", "no:cacheprovider", "."], [Plugin()]))
""",
}
COMMANDS = {"count": ["count", "d.log"], "tail": ["tail", "-f", "d.log"], "ls": ["ls", "d"]}
PROGRAMS |= {
    f"command {name}": f"""
from fluss.cli import main
sys.argv = ["fluss", "--url", URL, *{words}]
hang(0)
sys.exit(main())
"""
    for name, words in COMMANDS.items()
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with LocalCluster(tmp_path_factory.mktemp("data")) as cluster:
        with fluss.connect(cluster.url) as session:
            session.create_database("d")
            session.append("d.log", pa.table({"id": range(10)}), create=True)
        yield cluster


@pytest.fixture
def hung(cluster):
    yield cluster
    os.kill(cluster.pid, signal.SIGCONT)


@pytest.mark.slow  # starts a process, and interrupts it
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_an_interrupted_process_ends_soon_and_without_messages(hung, program, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SETUP + program, hung.url, str(hung.pid)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    sent_at = next(float(line) for line in done.stdout.splitlines() if line[:1].isdigit())
    assert time.monotonic() - sent_at < EXIT_S_MAX
    assert "Exception ignored" not in done.stderr
    if "fluss.cli" in program:
        assert done.returncode == 130
        assert "Traceback" not in done.stderr
