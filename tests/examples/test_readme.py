"""The programs in the READMEs run as printed, and print what the READMEs say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
WRITTEN_ADDRESS = "127.0.0.1:9123"
READMES = [ROOT / "README.md"]


def programs():
    for readme in READMES:
        for number, (program, output) in enumerate(PROGRAM.findall(readme.read_text()), start=1):
            yield pytest.param(program, output, id=f"{readme.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize(("program", "output"), list(programs()))
def test_a_program_of_a_readme_prints_what_it_says(cluster, program, output):
    assert WRITTEN_ADDRESS in program
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.replace(WRITTEN_ADDRESS, cluster.bootstrap)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")
