"""Pictures of terminals show what a real command prints: texts in their places, colours, bars."""

import re

import pytest

from tools.docs import screenshots
from tools.docs.terminal_pictures import Terminal

COMMAND = (
    r"printf 'one  two\r\n\033[1;32mgreen\033[0m <&>\r\n\xe2\x96\x88\xe2\x96\x88\r\nready'; cat"
)


@pytest.fixture
def terminal():
    with Terminal(["bash", "-c", COMMAND], columns=40, lines=6, environment={}) as terminal:
        terminal.wait_for("ready")
        yield terminal


def test_a_picture_has_the_texts_and_colours_of_the_screen(terminal):
    picture = terminal.picture("a <title>")
    assert "<title>a &lt;title&gt;</title>" in picture
    assert re.search(r'fill="#8fce8b" font-weight="bold">green</text>', picture)
    assert ">&lt;&amp;&gt;</text>" in picture
    assert re.search(r'<rect x="18.0" y="\d+" width="16.9"', picture), "a bar without seams"
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*>(?:one|two)<', picture)]
    assert places == [18.0, pytest.approx(18 + 5 * 8.43, abs=0.1)]


def test_what_is_typed_is_shown(terminal):
    terminal.send("typed\r")
    terminal.wait_for("typed")
    assert ">ready" in terminal.picture("")


def test_a_text_that_does_not_appear_is_an_error_with_the_screen(terminal):
    terminal.send("\x04")  # the end of the input, so that the command ends
    with pytest.raises(TimeoutError, match="ready"):
        terminal.wait_for("never")


def test_an_unknown_picture_is_refused_with_the_names(capsys):
    assert screenshots.take_screenshots(["demo"]) == 2
    assert "terminal-demo" in capsys.readouterr().out


def test_every_picture_is_there_and_small():
    names = {*(f"{each}.svg" for each in screenshots.TERMINALS)}
    names |= {f"{page.name}.png" for page in screenshots.PAGES}
    pictures = {each.name: each for each in screenshots.PICTURES.iterdir()}
    assert names <= set(pictures)
    assert sum(each.stat().st_size for each in pictures.values()) < 400_000
