"""The choice of Java, and the errors where none is usable. The Javas here are shell scripts."""

import stat

import pytest

from fluss.errors import MissingRuntimeError
from fluss_testkit.java_runtime import find_java


def install(directory, name, script):
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def java_of(version, home):
    return f"echo '    java.home = {home}' >&2; echo '    java.version = {version}' >&2"


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/nowhere")
    return tmp_path


def test_java_home_comes_before_the_path(machine, monkeypatch):
    install(machine / "bin", "java", java_of("11.0.1", machine))
    install(machine / "jdk" / "bin", "java", java_of("21.0.2", machine / "jdk"))
    install(machine / "jdk" / "bin", "javac", "true")
    monkeypatch.setenv("JAVA_HOME", str(machine / "jdk"))
    found = find_java()
    assert found.version == 21
    assert found.executable == machine / "jdk" / "bin" / "java"
    assert found.compiler == machine / "jdk" / "bin" / "javac"


def test_a_java_without_a_compiler_is_found_as_such(machine):
    install(machine / "bin", "java", java_of("17", machine / "jre"))
    assert find_java().compiler is None


@pytest.mark.parametrize("version", ["1.8.0_392", "9.0.4", "", "mystery"])
def test_an_old_java_is_refused(machine, version):
    install(machine / "bin", "java", java_of(version, machine))
    with pytest.raises(MissingRuntimeError, match="needs 11 or newer"):
        find_java()


def test_no_java_at_all_is_an_error_with_the_remedy(machine, monkeypatch):
    monkeypatch.setenv("PATH", str(machine / "empty"))
    with pytest.raises(MissingRuntimeError) as caught:
        find_java()
    assert "install a JDK" in caught.value.hint


def test_a_java_home_without_java_is_an_error(machine, monkeypatch):
    install(machine / "bin", "java", java_of("17", machine))
    monkeypatch.setenv("JAVA_HOME", str(machine / "gone"))
    with pytest.raises(MissingRuntimeError, match="JAVA_HOME"):
        find_java()


def test_a_java_that_does_not_run_is_an_error(machine):
    install(machine / "bin", "java", "exit 3")
    with pytest.raises(MissingRuntimeError, match="does not run"):
        find_java()
