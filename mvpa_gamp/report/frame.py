"""The frame of every page: look, script, policy, header, banners, a navigation made from its sections."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from mvpa_gamp.report.markup import text

_ENTRY = re.compile(r'<(section|details)[^>]* id="([^"]+)" data-title="([^"]+)"')


def document(title: str, header: str, sections: Iterable[str], version: str) -> str:
    """A self-contained page: nothing is fetched, and no script runs but the page's own, known by its hash.

    The navigation lists every section and every comparison inside (what ``markup`` gives a title).
    """
    css, turning, script = (_own_file(name) for name in ("page.css", "surface_viewer.js", "page.js"))
    script = turning + script
    body = "\n".join(part for part in sections if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>\n{css}</style>\n</head>\n<body>\n'
        f'<a class="skip" href="#content">To the results</a>\n{_navigation(body)}\n'
        f'<div class="page">\n{header}\n<main id="content">\n{body}\n</main>\n'
        f"<footer>Written by mvpa_gamp {text(version)}.</footer>\n</div>\n<script>{script}</script>\n"
        "</body>\n</html>\n"
    )


def _own_file(name: str) -> str:
    return resources.files("mvpa_gamp.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Nothing may be fetched, and no other script may run, whatever a label contains."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _navigation(body: str) -> str:
    """Links to the sections, below them to the comparisons of a section."""
    entries, inner = [], False
    for kind, anchor, title in _ENTRY.findall(body):
        if (kind == "details") != inner:
            entries.append("<ul>" if kind == "details" else "</ul>")
            inner = kind == "details"
        entries.append(f'<li><a href="#{anchor}">{title}</a></li>')
    return f'<nav aria-label="Contents"><ul>{"".join(entries)}{"</ul>" * inner}</ul></nav>'


def header(title: str, lead: str, banners: str, facts: Mapping[str, Any]) -> str:
    """The top of a page: title, a sentence, banners (HTML) and facts."""
    entries = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in facts.items())
    return (
        f'<header>\n<h1>{text(title)}</h1>\n<p class="lead">{text(lead)}</p>\n{banners}'
        f'<dl class="facts">{entries}</dl>\n</header>'
    )


def banner(strong: str, sentence: str, kind: str = "banner") -> str:
    """A paragraph that a reader must not miss."""
    return f'<p class="{kind}"><strong>{text(strong)}.</strong> {text(sentence)}</p>\n'
