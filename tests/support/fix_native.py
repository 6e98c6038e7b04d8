"""The fixture `row_functions`: runs tests with the functions in Python, and with those in C.

The module is missing only where there is no C compiler; anywhere else that is a failure.
"""

import pytest

from fluss.native import VARIABLE, find_row_taker
from tools.build_packages import has_compiler

needs_native = pytest.mark.skipif(
    not has_compiler(), reason="fluss_native is not compiled: install a C compiler (gcc or clang)"
)


@pytest.fixture(scope="module", params=["python", pytest.param("native", marks=needs_native)])
def row_functions(request):
    """Which functions take rows: those in Python, or those in C before them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "off" if request.param == "python" else "on")
        assert (find_row_taker() is not None) is (request.param == "native")
        yield request.param
