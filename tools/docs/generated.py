"""Lists the files of docs that are made from the code; `./dev generate` writes them."""

from __future__ import annotations

from functools import cache

from tools.docs.error_pages import errors_page
from tools.docs.index_pages import index_pages
from tools.docs.java_client_page import java_client_page
from tools.docs.option_pages import options_page
from tools.docs.overview_picture import overview_pictures
from tools.docs.type_pages import types_page


@cache
def generated_docs() -> dict[str, str]:
    """Return the text of each file, by its path in docs."""
    return {
        "options.md": options_page(),
        "types.md": types_page(),
        "errors.md": errors_page(),
        "proofs/java-client.md": java_client_page(),
        **index_pages(),
        **overview_pictures(),
    }
