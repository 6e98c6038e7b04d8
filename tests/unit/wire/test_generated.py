"""The generated messages are those of the proto file."""

import re
from pathlib import Path

import pytest

from fluss.wire._generated import messages_pb2
from fluss.wire.messages import message_class
from tests.support.generators.random_messages import labels

ROOT = Path(__file__).resolve().parents[3]
PROTO = ROOT / "tools" / "proto" / "fluss_api.proto"
GENERATED = ROOT / "packages" / "fluss-core" / "src" / "fluss" / "wire" / "_generated"
TYPES = {1: "double", 2: "float", 3: "int64", 5: "int32", 8: "bool", 9: "string", 12: "bytes"}
LABELS = {1: "optional", 2: "required", 3: "repeated"}


@pytest.mark.parametrize("name", ["messages_pb2.py", "messages_pb2.pyi"])
def test_a_generated_file_begins_with_a_notice(name):
    first = (GENERATED / name).read_text().splitlines()[0]
    assert "python -m tools.generate" in first
    assert "tools/proto/fluss_api.proto" in first


def test_the_messages_are_those_of_the_proto_file():
    text = re.sub(r"//.*", "", PROTO.read_text())
    written = {
        name: dict(re.findall(r"(\w+ \w+ \w+) = (\d+)", body))
        for name, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.DOTALL)
    }
    compiled = {
        name: {
            f"{LABELS[labels(message_class(name))[field.name]]} "
            f"{TYPES.get(field.type) or field.message_type.name} {field.name}": str(field.number)
            for field in message.fields
        }
        for name, message in messages_pb2.DESCRIPTOR.message_types_by_name.items()
    }
    assert compiled == written
    assert len(written) == 184
