"""Damaged batches of every kind are refused or read, and never end the process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SEED = "1"
ROUNDS = 20


def test_damaged_batches_do_not_crash_the_process():
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.generators.hostile_batches", SEED, str(ROUNDS)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    refused, read = map(int, re.findall(r"\d+", result.stdout))
    assert min(refused, read) > ROUNDS, "both must happen, or the damage is too little or too much"
