"""Templates of the page. All text is escaped; names of users stand in `<bdi>`: they turn nothing around them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from unshard.model.progress import size_text
from unshard.web.page.figures import duration


def rendered(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(**values)


def page_root(path: str) -> str:
    """The way from a page back to the first one, relative: `../` for each folder of the path below the page's own."""
    return "../" * (path.count("/") - 2) or "./"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("unshard.web.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters.update(
        known=lambda value: "unknown" if value is None else f"{value:,}",
        seconds=lambda value: "unknown" if value is None else duration(value),
        size=lambda value: "unknown" if value is None else size_text(value),
        word=lambda text: quote(str(text), safe=""),
        clock=lambda at: datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC") if at else "never",
    )
    return made
