"""What the catalog keeps as settings: the cluster's that were changed, and many of one kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fluss_server.catalog.catalog import setting_id

if TYPE_CHECKING:
    from fluss_server.catalog.catalog import Catalog
    from fluss_server.catalog.catalog_store import CatalogStore

_SETTING: Final = "configs"
KV_SNAPSHOT_INTERVAL: Final = "kv.snapshot.interval"


def changed_settings(catalog: Catalog) -> dict[str, str]:
    """Return the settings that were changed, with their values."""
    text = catalog.setting(_SETTING)
    found: dict[str, str] = {} if text is None else json.loads(text)
    return found


def keep_settings(catalog: Catalog, settings: Mapping[str, str]) -> None:
    """Store the settings that were changed."""
    catalog.put_setting(_SETTING, json.dumps(settings))


def settings_with(store: CatalogStore, prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with a prefix, by the rest of their names."""
    begin = setting_id(prefix)
    rows = store.rows(
        "SELECT id, body FROM producers WHERE substr(id, 1, ?) = ?", len(begin), begin
    )
    return {key.removeprefix(begin): bytes(body).decode() for key, body in rows}


def remove_settings(catalog: Catalog, names: Sequence[str]) -> None:
    """Delete settings; unknown names are ignored."""
    catalog.drop_producers([setting_id(each) for each in names])
