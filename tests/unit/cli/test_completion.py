"""Completion: what may stand at the cursor, in the form of each shell; no Arrow, no errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fluss.cli.application import application
from fluss.cli.commands.completion_command import SCRIPTS
from fluss.cli.completion import candidates, complete, split_line
from fluss.model.options.scan_options import LakeUse

BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def cluster(monkeypatch):
    """Pretend a cluster with two tables; note what is asked."""
    asked = []
    tables = {"shop.orders": ["id", "price"], "shop.clicks": ["url"], "log.events": ["at"]}

    def ask_names(url, profile, ask):
        asked.append((url, profile))
        kind, argument = ask
        if kind == "tables":
            return [each for each in tables if each.startswith(argument)]
        if kind == "databases":
            return [each for each in ("log", "shop") if each.startswith(argument)]
        return ["day=1"] if kind == "partitions" else tables[argument]

    monkeypatch.setattr("fluss.admin.name_lists.names_at", ask_names)
    for kind in ("table", "database"):
        monkeypatch.setattr(
            f"fluss.admin.name_lists.{kind}_names", lambda prefix, kind=kind: (f"{kind}s", prefix)
        )
    monkeypatch.setattr(
        "fluss.admin.name_lists.column_names",
        lambda table, only_key=False: ("columns", table),  # noqa: ARG005
    )
    monkeypatch.setattr(
        "fluss.admin.name_lists.partition_names", lambda table: ("partitions", table)
    )
    monkeypatch.delenv("FLUSS_URL", raising=False)
    return asked


def words_for(line):
    words, incomplete = split_line(line)
    return [word for word, _ in candidates(application(), words[1:], incomplete)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fluss he", ["head"]),
        ("fluss partitions ", ["ls", "add", "drop"]),
        ("fluss head s", ["shop.orders", "shop.clicks"]),
        ("fluss head 'sh", ["shop.orders", "shop.clicks"]),
        ("fluss drop s", ["shop", "shop.orders", "shop.clicks"]),
        ("fluss drop shop.orders shop.c", ["shop.clicks"]),
        ("fluss head shop.orders --columns ", ["id", "price"]),
        ("fluss head shop.orders --columns id,", ["id,price"]),
        ("fluss head shop.orders --columns=id,p", ["--columns=id,price"]),
        ("fluss head shop.orders -o j", ["json"]),
        ("fluss -o ", ["table", "json", "csv", "arrow"]),
        ("fluss head shop.orders --out", ["--output"]),
        ("fluss head --whe", ["--where"]),
        ("fluss upsert shop.orders id=1 ", ["price="]),
        ("fluss lookup shop.orders ", ["id=", "price="]),
        ("fluss head shop.orders --partition ", ["day=1"]),
        ("fluss tail shop.orders --mo", []),
        ("fluss head shop.orders --mode ch", ["changelog"]),
        ("fluss count shop.orders --start e", ["earliest"]),
        ("fluss count shop.orders --lake ", [each.value for each in LakeUse]),
        ("fluss completion z", ["zsh"]),
        ("fluss alter shop.orders --reset table.log.tt", ["table.log.ttl"]),
        ("fluss create a.b --set table.log.tt", ["table.log.ttl="]),
        ("fluss nosuch ", []),
        ("fluss export shop.orders ", []),
        ("fluss -- he", ["head"]),
        ("fluss head -- -", []),
    ],
)  # fmt: skip
def test_what_may_follow(cluster, line, expected):
    assert words_for(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fluss --url h:1 head s", ("h:1", None)),
        ("fluss head --profile=p s", (None, "p")),
        ("fluss -q --url=fluss://h:1 head s", ("fluss://h:1", None)),
    ],
)
def test_the_cluster_of_the_line_is_asked(cluster, line, expected):
    words_for(line)
    assert cluster == [expected]


def test_profiles_complete(monkeypatch, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[profiles.prod]\n[profiles.dev]\n")
    monkeypatch.setenv("FLUSS_CONFIG", str(path))
    assert words_for("fluss config use ") == ["prod", "dev"]
    assert words_for("fluss ls --profile p") == ["prod"]


def test_each_shell_gets_its_form(cluster, capsys):
    def answer(shell, line):
        given = {"_FLUSS_COMPLETE": shell, "_FLUSS_LINE": line, "_FLUSS_BREAKS": BREAKS}
        assert complete(application(), given) == 0
        return capsys.readouterr().out

    assert answer("bash", "fluss head --output=c") == "csv\n"  # bash replaces what follows `=`
    assert answer("bash", "fluss he") == "head\n"
    assert answer("zsh", "fluss he") == "head\tShow some rows.\n"
    assert answer("fish", "fluss he") == "head\tShow some rows.\n"


def test_a_failure_has_no_candidates(monkeypatch, capsys):
    monkeypatch.setattr("fluss.cli.completion.candidates", lambda *_: 1 / 0)
    assert complete(application(), {"_FLUSS_COMPLETE": "bash", "_FLUSS_LINE": "fluss "}) == 1
    assert capsys.readouterr() == ("", "")


def fluss_beside_python(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `fluss` is this package's, with no cluster."""
    program = tmp_path / "fluss"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom fluss.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "FLUSS_URL": "127.0.0.1:1",
        "FLUSS_CONFIG": str(tmp_path / "none.toml"),
    }


@pytest.mark.slow  # starts processes
def test_bash_completes(tmp_path):
    lines = [
        "fluss partitions ",
        "fluss head --output=c",
        "fluss head nosuch",
        "fluss describe --bu",
    ]
    tries = "".join(
        f'COMP_LINE="{each}"; COMP_POINT=${{#COMP_LINE}}; _fluss_completion fluss; '
        'echo "${COMPREPLY[*]}"\n'
        for each in lines
    )
    done = subprocess.run(
        ["bash", "-c", f"source <(fluss completion bash)\n{tries}complete -p fluss"],
        capture_output=True, text=True, check=False, timeout=60, env=fluss_beside_python(tmp_path),
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "ls add drop",
        "csv",
        "",
        "--buckets",
        "complete -o bashdefault -o default -F _fluss_completion fluss",
    ]


@pytest.mark.slow  # starts processes
@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(tmp_path):
    done = subprocess.run(
        ["fish", "-c", "fluss completion fish | source; complete -C 'fluss part'"],
        capture_output=True, text=True, check=False, timeout=60,
        env={**fluss_beside_python(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "partitions\tList, add and drop partitions.\n"


@pytest.mark.slow  # starts processes
@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_accepts_its_script(tmp_path):
    program = (
        "autoload -Uz compinit; compinit -D; source <(fluss completion zsh); "
        '_files() { print files }; compadd() { print -l -- "${@:#-*}" }; '
        '_describe() { print -l -- "${(@P)argv[-1]}" }; '
        "words=(fluss part); CURRENT=2; _fluss; words=(fluss export a.b ''); CURRENT=4; _fluss"
    )
    done = subprocess.run(
        ["zsh", "-f", "-c", program],
        capture_output=True, text=True, check=False, timeout=60, env=fluss_beside_python(tmp_path),
    )  # fmt: skip
    assert done.stdout.splitlines() == ["partitions:List, add and drop partitions.", "files"]


@pytest.mark.slow  # starts processes
def test_a_completion_loads_no_arrow():
    program = (
        "import sys; from fluss.cli.application import application; "
        "from fluss.cli.completion import complete; "
        "complete(application(), {'_FLUSS_COMPLETE': 'bash', '_FLUSS_LINE': sys.argv[1]}); "
        "print(sorted({'pyarrow', 'numpy', 'rich'} & set(sys.modules)))"
    )
    for line in ("fluss --url 127.0.0.1:1 head sh", "fluss upsert a.b --par", "fluss drop a"):
        done = subprocess.run(
            [sys.executable, "-c", program, line], capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines()[-1] == "[]", (line, done.stdout)


def test_every_shell_has_a_script():
    assert all("_FLUSS_COMPLETE" in each for each in SCRIPTS.values())
