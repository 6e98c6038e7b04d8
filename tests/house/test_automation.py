"""What runs elsewhere runs the same as here: hooks, the workflow, and the supported Pythons."""

import re
import tomllib

import yaml

from tests.house.sources import ROOT
from tools import dev
from tools.build_packages import PACKAGES

MINOR = re.compile(r"Programming Language :: Python :: (3\.\d+)$")


def test_the_hooks_are_the_checks_without_tests(monkeypatch):
    ran = []
    monkeypatch.setattr(dev, "_run", lambda words, **_: ran.append(words) or 0)
    assert dev.lint(()) == 0
    checks = {command_of(words) for words in ran}
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {command_of(hook["entry"].split()) for hook in hooks} == checks
    assert all(hook["language"] == "system" for hook in hooks), "the versions of the .venv"


def command_of(words):
    """The tool with its command, without options and files."""
    tool = words[0].rpartition("/")[2].rstrip("0123456789.")
    return (tool, *(word for word in words[1:] if word[0] not in "-."))


def test_the_workflow_runs_ci_on_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    tests = workflow["jobs"]["tests"]
    assert [step["run"] for step in tests["steps"] if "run" in step] == ["bash .ci/run"]
    for name in PACKAGES:
        project = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())[
            "project"
        ]
        supported = [
            found.group(1) for each in project["classifiers"] if (found := MINOR.match(each))
        ]
        assert supported == tests["strategy"]["matrix"]["python"], name
        assert project["requires-python"] == f">={supported[0]}"


def test_the_workflow_runs_the_recipes_of_this_repository():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["lint"]["steps"] if "run" in step]
    assert steps == ["./dev lint", "./dev build"]
    assert all(step.split()[1] in dev.RECIPES for step in steps)


def test_the_templates_of_issues_are_forms():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= form.keys(), path.name
            assert all(each["attributes"]["label"] for each in form["body"])
