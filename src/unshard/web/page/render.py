"""The templates of the page. All text is escaped.

Names given by users are in `<bdi>`, so that right-to-left characters in them do not affect the surrounding text. A
sentence that may contain such a name goes through `told`. It escapes the characters that set the direction of text.
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from unshard.model.progress import size_text
from unshard.web.page.figures import duration

_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that set the direction of the text behind them."""


def rendered(template: str, **values: Any) -> str:
    """Return the text of a template with these values, escaped for HTML."""
    return _templates().get_template(template).render(**values)


def page_root(path: str) -> str:
    """Return the relative path from a page to the first one: `../` for each folder of the path below the page's own."""
    return "../" * (path.count("/") - 2) or "./"


def _moment(text: str) -> Markup:
    """Return a time that a server has written as HTML, to which the page's script adds its age; other text escaped."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return escape(text or "unknown")
    if at.tzinfo is None:
        return escape(text)
    shown = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time class="since" datetime="{}">{}</time>').format(at.isoformat(timespec="seconds"), shown)


def _begun(at: float, at_least: bool = False) -> Markup:
    """Return the time since when something is so, to which the page's script adds how long that is."""
    moment = datetime.fromtimestamp(at, UTC)
    words = "for at least" if at_least else "for"
    shown = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    made = Markup('<time class="since spoken" data-words="{}" datetime="{}" title="since {}">since {}</time>')
    return made.format(words, moment.isoformat(timespec="seconds"), shown, shown)


def _told(text: object) -> str:
    return _TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text))


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
        dictwith=lambda known, key, value: {**known, key: value},
        moment=_moment,
        begun=_begun,
        told=_told,
        quoted=shlex.quote,
        clock=lambda at: datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC") if at else "never",
    )
    return made
