"""A program is compiled once, and again when it changes; without a compiler its source runs."""

import subprocess

import pytest

from fluss_testkit.java_runtime import JavaRuntime
from tests.support.java_programs import compiled, java_command

PROGRAM = """
class Greeter {
    public static void main(String[] words) { System.out.println("%s, " + words[0]); }
}
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("FLUSS_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "Greeter.java"
    path.write_text(PROGRAM % "hello")
    return path


def run(java, source):
    command = [*java_command(java, (), [], [source]), "there"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow  # starts a compiler and some JVMs
def test_a_program_is_compiled_when_it_is_new(java, source):
    assert run(java, source) == "hello, there\n"
    classes = compiled(java, [], [source])
    made = (classes / "Greeter.class").stat()
    assert run(java, source) == "hello, there\n"
    assert (classes / "Greeter.class").stat() == made, "it is not compiled again"
    source.write_text(PROGRAM % "good day")
    assert run(java, source) == "good day, there\n"


def test_what_does_not_compile_fails_with_the_message_of_the_compiler(java, source):
    source.write_text("class Greeter { int x = ; }")
    with pytest.raises(AssertionError, match=r"Greeter\.java:1: error: illegal start"):
        compiled(java, [], [source])


def test_without_a_compiler_or_a_cache_it_runs_from_its_source(java, source, tmp_path, monkeypatch):
    jre = JavaRuntime(executable=java.executable, home=tmp_path, version=java.version)
    assert java_command(jre, ("-ea",), [source], [source])[1:] == [
        *("-ea", "-cp", str(source), str(source))
    ]
    monkeypatch.setenv("FLUSS_CACHE_DIR", str(source))  # a file
    assert java_command(java, (), [], [source])[-1] == str(source)
