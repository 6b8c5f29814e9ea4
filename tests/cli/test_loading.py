"""What loads at the start of a process is left out of garbage collections."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from unshard.cli.loading import loading
with loading():
    assert not gc.isenabled()
    import decimal, http.client
    modules = [decimal.__dict__, http.client.__dict__]
assert gc.isenabled()
collected = {id(one) for one in gc.get_objects()}
assert not collected.intersection(map(id, modules))
later = [[]]
assert id(later) in {id(one) for one in gc.get_objects()}
"""


def test_what_is_loaded_is_in_no_collection_and_what_comes_later_is() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
