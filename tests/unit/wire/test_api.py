"""APIs and versions: those of Java, those of a real server, and errors for a client."""

import json
from pathlib import Path

import pytest

from fluss.errors import LeaderChangedError, UnsupportedVersionError
from fluss.wire.api import ApiKey, ServerApis, ServerRole
from fluss.wire.frame import read_response
from fluss.wire.messages import ApiVersionsResponse, read_message, write_message
from tests.support.differential.golden_frames import talk

ENUMERATIONS = Path(__file__).resolve().parents[2] / "java" / "golden" / "enumerations.json"


def answer_of(server):
    ((_, got),) = talk(f"versions of a {server}")
    return read_message(ApiVersionsResponse, read_response(memoryview(got)[4:])[1])


@pytest.fixture
def coordinator():
    return ServerApis.from_response(answer_of("coordinator"))


@pytest.fixture
def tablet_server():
    return ServerApis.from_response(answer_of("tablet server"))


# --- the table ----------------------------------------------------------------------------------


def test_the_keys_run_without_a_gap():
    assert [int(key) for key in ApiKey] == list(range(1000, 1067))


def test_names_versions_and_visibility_are_those_of_java():
    cases = json.loads(ENUMERATIONS.read_text())["cases"]
    (java,) = [case["entries"] for case in cases if case["name"] == "api keys"]
    newer = {  # 1.0.0
        "PRODUCE_LOG": 1,
        "PUT_KV": 3,
        "GET_KV_SNAPSHOT_METADATA": 1,
        "ALTER_TABLE": 1,
    }
    ours = [
        [int(key), key.name, key.version_min, key.version_max, key.is_public]
        for key in ApiKey
        if key.since == "0.9"
    ]
    assert [[*each[:3], newer.get(each[1], each[3]), each[4]] for each in java] == ours


def test_who_serves_what_is_what_real_servers_say(coordinator, tablet_server):
    for key in ApiKey:
        if key.since == "0.9":
            assert (ServerRole.COORDINATOR in key.servers) == (key in coordinator.versions), key
            assert (ServerRole.TABLET_SERVER in key.servers) == (key in tablet_server.versions), key


def test_every_api_for_clients_has_its_messages():
    for key in ApiKey:
        if key.is_public:
            assert key.request.DESCRIPTOR.name.endswith("Request"), key
            assert key.response.DESCRIPTOR.name.endswith("Response"), key
    assert ApiKey.GET_METADATA.request.DESCRIPTOR.name == "MetadataRequest"


def test_messages_between_servers_are_not_here():
    with pytest.raises(ValueError, match="UPDATE_METADATA is between servers"):
        _ = ApiKey.UPDATE_METADATA.request


def test_a_key_is_its_number():
    assert ApiKey(1016) is ApiKey.PUT_KV
    assert ApiKey.PUT_KV == 1016
    assert f"{ApiKey.PUT_KV}" == "1016"


# --- negotiation --------------------------------------------------------------------------------


def test_client_takes_the_highest_version_that_both_sides_know(tablet_server):
    assert tablet_server.version(ApiKey.PUT_KV) == 1
    assert tablet_server.version(ApiKey.FETCH_LOG) == 0
    assert tablet_server.version(ApiKey.LOOKUP) == 1


def test_the_error_names_the_release_that_has_the_api(tablet_server):
    assert not tablet_server.offers(ApiKey.SCAN_KV)
    with pytest.raises(UnsupportedVersionError) as refusal:
        tablet_server.version(ApiKey.SCAN_KV)
    assert "SCAN_KV (1061); the APIs it serves: 1000 to 1059." in str(refusal.value)
    assert refusal.value.hint == "SCAN_KV came with Fluss 1.0; the server must be at least that."
    assert refusal.value.api_key is ApiKey.SCAN_KV


def test_the_error_names_the_role_to_ask(coordinator, tablet_server):
    with pytest.raises(UnsupportedVersionError) as refusal:
        coordinator.version(ApiKey.FETCH_LOG)
    assert refusal.value.hint == "Ask a tablet server."
    with pytest.raises(UnsupportedVersionError) as refusal:
        tablet_server.version(ApiKey.CREATE_TABLE)
    assert refusal.value.hint == "Ask a coordinator."


def test_the_error_names_both_ranges_of_versions():
    response = ApiVersionsResponse()
    response.api_versions.add(api_key=ApiKey.PUT_KV, min_version=4, max_version=5)
    assert not ServerApis.from_response(response).offers(ApiKey.PUT_KV)
    with pytest.raises(
        UnsupportedVersionError, match="knows 4 to 5, this client 0 to 3"
    ) as refusal:
        ServerApis.from_response(response).version(ApiKey.PUT_KV)
    assert refusal.value.server_versions == (4, 5)


def test_the_error_shows_that_a_server_serves_nothing():
    with pytest.raises(UnsupportedVersionError, match="the APIs it serves: none"):
        ServerApis.from_response(ApiVersionsResponse()).version(ApiKey.PUT_KV)


def test_client_reads_the_apis_that_server_writes():
    served = ServerApis.of(
        [ApiKey.API_VERSIONS, ApiKey.PUT_KV], server_type=ServerRole.TABLET_SERVER
    )
    response = read_message(ApiVersionsResponse, write_message(served.to_response()))
    assert ServerApis.from_response(response) == served
    assert ServerApis.from_response(response).version(ApiKey.PUT_KV) == 3


def test_server_with_both_roles_reports_none():
    response = ServerApis.of(ApiKey).to_response()
    assert not response.HasField("server_type")
    assert ServerApis.from_response(response).server_type is None


# --- roles --------------------------------------------------------------------------------------


def test_client_knows_a_server_by_its_role(coordinator, tablet_server):
    assert coordinator.server_type is ServerRole.COORDINATOR
    assert tablet_server.server_type is ServerRole.TABLET_SERVER
    coordinator.check_type(ServerRole.COORDINATOR)
    with pytest.raises(
        LeaderChangedError, match="is a tablet server, where a coordinator"
    ) as wrong:
        tablet_server.check_type(ServerRole.COORDINATOR)
    assert wrong.value.refresh_metadata


@pytest.mark.parametrize("number", [0, 3, -1])
def test_an_unknown_role_is_ignored(number):
    apis = ServerApis.from_response(ApiVersionsResponse(server_type=number))
    assert apis.server_type is None
    apis.check_type(ServerRole.COORDINATOR)
