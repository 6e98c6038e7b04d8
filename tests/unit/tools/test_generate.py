"""The generated files are up to date, and the generator reports those that are not."""

import pytest

from tools import generate


def test_the_error_codes_are_up_to_date():
    for path, text in generate.generate_error_codes().items():
        assert path.read_text() == text


def test_the_messages_are_up_to_date():
    if not (generate.PRIVATE / "made-from").exists():
        pytest.skip("the compiler is not here; `./dev generate` installs it")
    for path, text in generate.generate_messages().items():
        assert path.read_text() == text


def test_a_file_that_is_out_of_date_is_named_with_its_differences(monkeypatch, tmp_path, capsys):
    stale = tmp_path / "stale.py"
    stale.write_text("one\ntwo\nthree\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "generate_messages", dict)
    monkeypatch.setattr(generate, "generate_docs", dict)
    monkeypatch.setattr(generate, "generate_scan_arguments", dict)
    monkeypatch.setattr(generate, "generate_error_codes", lambda: {stale: "one\n2\nthree\n"})
    assert generate.main(["--check"]) == 1
    assert stale.read_text() == "one\ntwo\nthree\n", "a check writes nothing"
    printed = capsys.readouterr().out
    assert "stale.py is out of date, 2 lines differ" in printed
    assert "-two" in printed
    assert "+2" in printed
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_a_long_difference_is_cut(monkeypatch, tmp_path, capsys):
    missing = tmp_path / "missing.py"
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "generate_messages", dict)
    monkeypatch.setattr(generate, "generate_docs", dict)
    monkeypatch.setattr(generate, "generate_scan_arguments", dict)
    monkeypatch.setattr(generate, "generate_error_codes", lambda: {missing: "line\n" * 1000})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out.count("+line") == generate.DIFF_LINES_MAX


def test_a_compiler_that_cannot_be_installed_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "PRIVATE", tmp_path / "private")
    monkeypatch.setattr(generate, "_steps", lambda *_: [["false"]])
    assert generate.main(["--check"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("generate: cannot install grpcio-tools==1.62.3 into private")


def test_an_unknown_argument_is_refused(capsys):
    assert generate.main(["--chekc"]) == 2
    assert "usage" in capsys.readouterr().err
