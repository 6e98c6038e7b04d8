"""`./dev` names its recipes, waits for what it starts, and prints a plan before a test run."""

import os
import signal
import subprocess
import sys

import pytest

from tools import dev, test_plan

# A program that reports after Ctrl-C, half a second later, and ends with a code of its own.
SLOW_TO_END = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)
    print("the result", flush=True)
    sys.exit(3)
"""


@pytest.mark.slow  # a program is interrupted
def test_after_ctrl_c_the_program_ends_in_its_own_way():
    program = f"import sys; from tools.dev import _run; sys.exit(_run([sys.executable, '-c', {SLOW_TO_END!r}]))"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=dev.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stdout.readline() == "ready\n"
        # As a terminal does: every process of the group gets it.
        os.killpg(run.pid, signal.SIGINT)
        assert run.stdout.read() == "the result\n"
        assert run.wait() == 3


def test_every_recipe_is_listed_with_a_sentence(capsys):
    assert dev.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(dev.RECIPES)
    assert all(line.rstrip().endswith(".") for line in lines)


def test_the_plan_names_folders_reasons_and_time(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(test_plan, "DURATIONS", tmp_path / "durations.json")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("FLUSS_TEST_CLUSTER", "embedded")
    test_plan.print_full_plan(())
    plan = capsys.readouterr().out
    for folder in test_plan.FOLDERS:
        assert f"  {folder} " in plan
    assert "FLUSS_TEST_CLUSTER=embedded" in plan
    assert "a real Fluss, Java's own classes, Spark: JAVA_HOME is" in plan
    assert "time: about" in plan
    test_plan.print_full_plan(("-k", "oracle"))
    assert "the tests of `pytest -k oracle`" in capsys.readouterr().out


def test_every_folder_of_tests_is_in_the_plan():
    folders = {
        f"tests/{path.parent.relative_to(dev.ROOT / 'tests').parts[0]}"
        for path in (dev.ROOT / "tests").rglob("test_*.py")
    } - {"tests/support"}
    assert folders == set(test_plan.FOLDERS)


def test_the_duration_of_a_complete_run_is_remembered(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(test_plan, "DURATIONS", tmp_path / ".dev" / "durations.json")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # unit tests start no Java
    clock = iter([0.0, 600.0, 0.0, 7.0])
    monkeypatch.setattr(test_plan, "monotonic", lambda: next(clock))
    assert test_plan.remember("full", lambda: 1) == 1
    assert test_plan.remember("full", lambda: 2) == 2, "interrupted"
    test_plan.print_full_plan(())
    assert "time: about 10 minutes, as the last time" in capsys.readouterr().out


@pytest.mark.slow  # collects twice, in processes of their own
def test_a_fresh_clone_compiles_its_tests_once_before_workers_start(monkeypatch, tmp_path):
    for number, folder in enumerate(test_plan.FOLDERS):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"test_{number}.py").write_text("def test_nothing():\n    pass\n")
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    dev._compile_once()
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("*-pytest-*.pyc")}
    assert compiled == {f"test_{number}" for number in range(len(test_plan.FOLDERS))}
    monkeypatch.setattr(dev, "PYTHON", "none: all is compiled")
    dev._compile_once()
