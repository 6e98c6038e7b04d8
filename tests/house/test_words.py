"""Retired names and phrases, each with the reason.

A name is retired if it needs its docstring to be understood or means two things; a phrase, if
readers stumble on it or misread it. CHANGELOG.md and docs/decisions are history and keep their
words. `python -m tests.house.test_words` lists all findings by room.
"""

import re
from collections import Counter

from tests.house.sources import ROOT, tracked_texts

HISTORY = ("CHANGELOG.md", "docs/decisions/", "tests/house/test_words.py")

# Names: a regular expression for the whole name, and what says it better.
NAMES = {
    r"[Ee]rrands?": "a cancellation token is an argument of what waits: `Cancellation`",
    r"_?[Dd]ressers?|dress": "it finishes batches for output: `OutputBuilder`, `finish`",
    r"hurry": "it seals a batch soon: `seal_soon`",
    r"newcomers|let_rest": "pacing of table creation: `ddl_pacing`, `wait_until_settled`",
    r"OpenSplits": "a reader of splits: `SplitReader`",
    r"SchemaBook": "a cache of schemas: `SchemaCache`",
    r"TOLD_BY_NAMES": "types that keep their value in a partition's name: `LOSSLESS_IN_PARTITION_NAME`",
    r"ConnectionCore|TableCore|ScanSource": "a connection, and one table handle for every verb",
    r"[Tt]elling|called_from": "context of an error: `error_context`; `call_in_frame`",
    r"pin_buckets|Pins": "asks leaders where buckets begin and end: `fetch_extents`, `QuerySnapshot`",
    r"fetch_trouble|Remedy": "decides what follows an error: `plan_fetch_errors`, `Recovery`",
    r"_?Wanted|_Asked": "what is pushed down to Fluss: `PushdownPlan`",
    r"Asker": "lookups in flight: `LookupPipeline`",
    r"write_once": "the rows are there exactly once: `append_exactly_once`",
    r"doubts_of": "limits of a delivery guarantee: `delivery_caveats`",
    r"Promise|Wish": "`DeliveryGuarantee`, `DeliveryMode`",
    r"probes": "the state that servers keep of writers: `writer_state`",
    r"ragged": "runs of bytes of different lengths: `byte_runs`",
    r"let_go": "cleans up on the engine: `post_cleanup`",
    r"at_once": "three ways to wait: `run_blocking`, `run_awaitable`, `as_awaitable`",
    r"dice": "a random generator is `rng`, a random share of a pause `jitter`",
    r"Settlement": "the result of a batch: `BatchResult`",
    r"[Dd]epartures?|depart": "a produce request: `ProduceRequest`, `next_requests`",
    r"WriteRoom": "memory for writes: `WriteMemory`",
    r"spoiled": "it failed",
    r"NoRows": "the result of a write without rows: `EmptyWriteResult`",
    r"Landed": "a batch found in the log: `LoggedBatch`",
    r"upkeep": "it is `maintenance`",
    r"\w+_desk|desk": "it prepares the parts for a test: a harness",
    r"twin_\w+": "two servers compared: `differential_*`",
    r"(?<!apache\.)(?<!getLogger\(\")fluss\.(?:client|engine|plan|connector|transport)": (
        "rooms are cut by verb; see ARCHITECTURE.md"
    ),
    r"fluss_server[./]java": "the real Fluss for tests and laptops is `fluss_testkit`",
    r"under_way": "`in_flight`",
    r"wanted": "`requested`, `expected`",
}  # fmt: skip
# Phrases: a regular expression in any case, and what to write instead.
_BEFORE_WHO = "for|by|of|to|from|with|as|where|what|that|and|or|is|if|when|how"
PHRASES = {
    r"whoever|whosoever": "name the role: the caller, the reader, the server",
    r"somebody|nobody": "name the role, or what does not happen",
    rf"(?:{_BEFORE_WHO}) who": "a role needs a noun: 'for callers that'",
    r"wanted": "requested",
    r"Twice is once": "Idempotent.",
    r"(?:is|was|are|were|be|been|being|as) (?:said|told)": "is reported, named, listed",
    r"What is asked for is not there|asked for is not there": "name what does not exist",
    r"behind the (?:last|first|end)": "one past the last, after",
    r"at once": "it means two things: immediately, or concurrently",
    r"under way": "in flight, in progress",
    r"ever after": "from then on",
    r"anew": "again",
    r"comes? to life": "resumes",
    r"on (?:its|their) way": "in flight",
    r"Raises:\s+\w+: It does\.": "a sentence that names the condition",
}


def rules():
    """Every expression with its reason."""
    for name, reason in NAMES.items():
        yield expression_of([name], _NAME), reason
    for phrase, reason in PHRASES.items():
        yield expression_of([_over_lines(phrase)], _PHRASE, re.IGNORECASE), reason


_TEST = re.compile(r"(?<=def )test_\w+")
# A name ends where a word ends.
_NAME = r"(?<![A-Za-z0-9_])(?:{})(?![A-Za-z0-9_])"
_PHRASE = r"(?<!\w)(?:{})(?!\w)"


def expression_of(alternatives, frame, flags=0):
    """One expression for several names or phrases."""
    return re.compile(frame.format("|".join(alternatives)), flags)


def _over_lines(phrase):
    return phrase.replace(" ", r"[\s#*]+")  # a phrase may run over the end of a line


def may_hold_a_finding(text):
    """Whether a rule may find something: in a tenth of the time of asking each of them."""
    return bool(_ANY_NAME.search(text) or _ANY_PHRASE.search(text.lower()))


_ANY_NAME = expression_of(NAMES, _NAME)
# In small letters, which is faster than an expression that ignores the case.
_ANY_PHRASE = expression_of((_over_lines(each.lower()) for each in PHRASES), _PHRASE)


def with_sentences(text):
    """The text with the names of tests as sentences; lines stay where they are."""
    return _TEST.sub(lambda found: found.group().replace("_", " "), text)


def findings():
    """Yield each use of a retired name or phrase: path, line, text, reason."""
    listed = list(rules())
    for path, written in tracked_texts():
        name, text = path.relative_to(ROOT).as_posix(), with_sentences(written)
        if name.startswith(HISTORY) or not may_hold_a_finding(text):
            continue
        for pattern, reason in listed:
            for found in pattern.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield name, line, " ".join(found.group().split()), reason


def room_of(name):
    """The folder whose owner corrects a finding: a room of the core, or two folders deep."""
    parts = name.split("/")
    depth = 5 if name.startswith("packages/fluss-core/src/") else 3
    return "/".join(parts[: min(depth, len(parts) - 1)]) or "."


def test_retired_names_and_phrases_do_not_come_back():
    found = [f"{name}:{line}: {text!r}: {reason}" for name, line, text, reason in findings()]
    assert not found, "\n".join(found)


def test_a_rule_finds_what_it_forbids():
    text = "import fluss.client\nTableCore(errands)\nThe fetches Begin\nanew."
    assert sum(len(pattern.findall(text)) for pattern, _ in rules()) == 4
    for word in (
        "fluss.client",
        "TableCore",
        "errands",
        "for\n# who",
        "Anew",
        "Raises:\n  X: It does.",
    ):
        assert any(pattern.search(word) for pattern, _ in rules()), word
        assert may_hold_a_finding(word), word
    assert not may_hold_a_finding("the fetches begin again")
    assert may_hold_a_finding(with_sentences("def test_rows_are_sent_at_once():"))


def main():
    """Print all findings, by room."""
    found = sorted(findings(), key=lambda finding: (room_of(finding[0]), *finding[:2]))
    for room, count in Counter(room_of(finding[0]) for finding in found).items():
        print(f"\n{room}: {count}")  # noqa: T201
        for name, line, text, reason in found:
            if room_of(name) == room:
                print(f"  {name}:{line}: {text!r} -> {reason}")  # noqa: T201


if __name__ == "__main__":
    main()
