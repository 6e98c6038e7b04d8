"""The commands of `fluss`: one set of options, one prefix, help, quick starts."""

from __future__ import annotations

import logging
import os
import re
import shlex
import subprocess
import sys
from inspect import cleandoc

import pytest
import typer

import fluss.session
from fluss import cli
from fluss.cli import main
from fluss.cli.application import ENTRIES, application
from fluss.cli.command_group import EXAMPLES
from fluss.errors import FlussError

OURS = [each for each in ENTRIES if each.target is not None]


def commands():
    """Yield every command of ours with the words that call it."""
    root = application()
    for entry in OURS:
        command = root.get_command(None, entry.name)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield [entry.name], command
        else:
            yield from (([entry.name, name], each) for name, each in inner.items())


COMMANDS = {" ".join(words): command for words, command in commands()}


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `fluss` in this process; return the exit code, the output, and the error output."""

    def one(*words):
        monkeypatch.setattr(sys, "argv", ["fluss", *words])
        code = main()
        written = capsys.readouterr()
        return code, written.out, written.err

    return one


def test_summaries_are_known_before_a_command_is_loaded(run):
    code, out, _ = run("-h")
    assert code == 0
    for entry in ENTRIES:
        assert re.search(rf"^  {entry.name} +{re.escape(entry.summary)}", out, re.MULTILINE)
    assert run("--help")[1] == out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(run, name):
    code, out, _ = run(*name.split(), "-h")
    assert code == 0
    assert f"Usage: fluss {name} " in out
    assert "\nExamples:\n" in out
    assert run(*name.split(), "--help")[1] == out


def all_commands():
    """Yield every command with the words that call it, those of other packages included."""
    root = application()
    for name in root.list_commands(None):
        command = root.get_command(None, name)
        yield [name], command
        yield from (
            ([name, each], inner) for each, inner in getattr(command, "commands", {}).items()
        )


@pytest.mark.parametrize("words", [words for words, _ in all_commands()], ids=" ".join)
def test_help_names_values_and_has_no_python_types(run, words):
    code, out, _ = run(*words, "-h")
    assert code == 0
    assert not re.findall(r"<(?:str|int|float|path|list)\b|\brange>|TEXT RANGE", out)
    assert "..." not in out.replace("}...", "").replace("]...", ""), "a summary is cut off"
    assert max(map(len, out.partition("\nExamples:")[0].splitlines())) <= 80


def examples():
    """Yield the words of every call of `fluss` in the examples of a help."""
    for command in COMMANDS.values():
        _, _, text = cleandoc(command.help).partition(EXAMPLES)
        for line in re.sub(r"&&\n\s*", "&& ", cleandoc(text)).splitlines():
            call = []
            for word in [*shlex.split(line.partition("  #")[0].replace("<(", "")), "|"]:
                if word in {"|", "&&", "<", ">"}:
                    if call[:1] == ["source"]:
                        call = [*call[1:-1], call[-1].rstrip(")")]
                    if call[:1] == ["fluss"]:
                        yield tuple(call[1:])
                    call = []
                else:
                    call.append(word)


@pytest.mark.parametrize("words", sorted(set(examples())), ids=" ".join)
def test_every_example_is_understood(words):
    command = application()
    context = command.make_context("fluss", list(words))
    rest = [*context._protected_args, *context.args]
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)  # refuses what is wrong
        rest = [*getattr(context, "_protected_args", []), *context.args]


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("words", [["--version"], ["-h"], ["import", "-h"], ["demo", "--help"]])
def test_what_needs_no_server_loads_no_arrow(words):
    program = (
        "import sys; from fluss.cli import main; code = main(); "
        "print(sorted({'pyarrow', 'numpy', 'rich', 'duckdb'} & set(sys.modules)), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"fluss {fluss.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["haed"], "fluss: There is no command 'haed'.\n  hint: did you mean 'head'?\n"),
        (["zzz"], "fluss: There is no command 'zzz'.\n  hint: fluss -h lists the commands\n"),
        (["acl", "ls2"], "fluss: There is no command 'acl ls2'.\n  hint: did you mean 'ls'?\n"),
        (["config", "show"], "'config show'.\n  hint: fluss config -h lists the commands\n"),
        (["tier", "stats"], "'tier stats'.\n  hint: did you mean 'status'?\n"),
        (["tier", "a.b"], "'tier a.b'.\n  hint: a table is an option: fluss tier --table a.b\n"),
        (["tier", "orders"], "a table is an option: fluss tier --table orders\n"),
        (["head"], "fluss: Missing argument 'TABLE'.\n  hint: fluss head -h shows how"),
        (["head", "a.b", "--colums", "x"], "--colums"),
        (["head", "a.b", "-o", "xml"], "xml"),
        (["-q", "ls", "-v"], "--quiet and --verbose contradict each other"),
        (["--url", "a:1", "ls", "--url", "b:1"], "--url is given twice: a:1 and b:1"),
        (["--url", "a:1", "completion", "bash"], "leave them out"),
        (["completion", "bash", "--profile", "x"], "leave them out"),
        (["alter", "a.b"], "There is nothing to change"),
        (["create", "a.b", "id INT", "--like", "a.c"], "given twice"),
        (["delete", "a.b"], "Name keys"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_message_with_exit_code_2(run, monkeypatch, words, said):
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("fluss: ")
    assert "hint: " in err


def test_no_words_show_the_help_and_count_as_wrong_usage(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: fluss")
    assert run("--no-progress")[0] == 2


def test_commands_of_other_packages_take_the_global_options(monkeypatch):
    other = typer.Typer()
    seen = []

    @other.command()
    def probe(context: typer.Context, *, shout: bool = False) -> None:
        seen.append((context.obj.given_url, context.obj.output, context.obj.is_quiet, shout))

    class Point:
        name, value, dist = "probe", "other:app", None

        def load(self):
            return other

    monkeypatch.setattr("fluss.cli.command_group.entry_points", lambda group: [Point()])  # noqa: ARG005
    monkeypatch.setattr(
        sys, "argv", ["fluss", "-q", "probe", "--url", "h:1", "--shout", "-o", "csv"]
    )
    assert main() == 0
    assert seen == [("h:1", "csv", True, True)]
    assert ("probe", "A command of the package other.") in [
        (each.name, each.summary) for each in application().all_entries()
    ]


def test_a_missing_package_is_named(run, monkeypatch):
    monkeypatch.setattr("fluss.cli.command_group.entry_points", lambda group: [])  # noqa: ARG005
    code, _, err = run("sql", "SELECT 1")
    assert code == 1
    assert err == (
        "fluss: `fluss sql` is in another package.\n  hint: run `./dev build` in a checkout of "
        "Fluss for Python, then: pip install --find-links dist fluss-duckdb\n"
    )


def test_a_defect_is_one_line_and_its_traceback_is_shown_on_request(run, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no\nlines")

    monkeypatch.setattr("fluss.session.connect", fail)
    code, out, err = run("ls")
    assert (code, out) == (1, "")
    assert err.startswith("fluss: unexpected RuntimeError: no\n  hint: ")
    code, _, err = run("ls", "--traceback")
    assert code == 1
    assert err.startswith("Traceback (most recent call last)")


def test_a_refusal_shows_its_traceback_on_request(run):
    code, _, err = run("--url", "127.0.0.1:1", "ls")
    assert (code, err.count("Traceback")) == (1, 0)
    code, _, err = run("--url", "127.0.0.1:1", "--traceback", "ls")
    assert code == 1
    assert "Traceback" in err


def test_a_missing_password_is_asked_for_on_a_terminal(run, monkeypatch):
    given = []

    def connect(url, **settings):
        given.append(settings.get("password"))
        return before(url, **settings)

    before = fluss.session.connect
    monkeypatch.setattr("fluss.session.connect", connect)
    monkeypatch.setattr("typer.prompt", lambda *_, **settings: "secret" * settings["hide_input"])
    url = "fluss://ann@127.0.0.1:1"
    code, _, err = run("--url", url, "ls")
    assert (code, given) == (1, [None])
    assert "set FLUSS_SASL_PASSWORD in the environment" in err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    code, _, err = run("--url", url, "ls")
    assert (code, given) == (1, [None, None, "secret"])
    assert "Cannot connect to 127.0.0.1:1" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ["fluss: late", "fluss: wrong"]),
        (["-v"], ["fluss: begun", "fluss: late", "fluss: wrong"]),
        (["-q"], ["fluss: wrong"]),
    ],
)
def test_the_log_is_shown_as_far_as_the_options_say(run, monkeypatch, words, shown):
    logger = logging.getLogger("fluss.sender")

    def connect(*_, **__):
        logger.info("begun")
        logger.warning("fluss: late")  # as the notices of `fluss.waiting` begin
        logger.error("wrong")
        raise FlussError("ended")

    monkeypatch.setattr("fluss.session.connect", connect)
    for _ in range(2):  # the first run leaves nothing behind
        _, _, err = run("ls", *words)
        assert err.splitlines() == [*shown, "fluss: ended"]
    assert logging.getLogger("fluss").level == logging.NOTSET


@pytest.mark.parametrize(
    ("words", "expected"), [([], None), (["-q"], "off"), (["--no-progress"], "off"), (["-v"], None)]
)
def test_progress_is_shown_as_far_as_the_options_say(run, monkeypatch, words, expected):
    monkeypatch.delenv("FLUSS_PROGRESS", raising=False)
    seen = []
    monkeypatch.setattr(
        "fluss.session.connect", lambda *_, **__: seen.append(os.environ.get("FLUSS_PROGRESS"))
    )
    run("ls", *words)
    assert seen == [expected]
    assert "FLUSS_PROGRESS" not in os.environ


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_prompt_begins_a_line_after_ctrl_c(is_terminal, monkeypatch, capsys):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.invoke", pressed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "argv", ["fluss", "tail", "db.events", "-f"])
    assert main() == 130
    assert capsys.readouterr().err == ("\n" if is_terminal else "")


def test_an_interrupt_while_modules_are_imported_ends_quietly(monkeypatch, capsys):
    def imports():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", imports)
    assert cli.main() == cli.INTERRUPTED
    assert capsys.readouterr().err == ""
