"""Hooks of mkdocs: the site has the paths of the repository, and its pages load nothing from other hosts.

So `../CONTRIBUTING.md` in a page means the same on the site, where mkdocs checks it, as on a plain git host.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", "hub/README.md")
"""Outside of docs/."""

_ROOT: Final = Path(__file__).parents[1]
_DOCS: Final = _ROOT / "docs"
_CODE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"\]\(([^)\s#:]+)")
_LOADED: Final = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
"""What a browser loads by itself; `<a href>` is not among it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Name the files of docs/ from the root of the checkout; add the other pages, and files that a page links to."""
    pages = [*PAGES, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    targets = {*config.extra_css, *(target for page in pages for target in _linked(page))} - {*pages}
    linked = {target for target in targets if (_ROOT / target).is_file()}
    made = [File.generated(config, path, abs_src_path=str(_ROOT / path)) for path in (*pages, *sorted(linked))]
    theme = [file for file in files if not file.abs_src_path or not Path(file.abs_src_path).is_relative_to(_DOCS)]
    return Files([*theme, *made])


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Refuse a page that loads anything from another host.

    Raises:
        PluginError: If it does.
    """
    if loaded := _LOADED.findall(output):
        raise PluginError(f"{page.file.src_uri} loads {', '.join(loaded)}: copy it into the repository")
    return output


def _linked(page: str) -> list[str]:
    """List what a page links to, from the root of the checkout."""
    text = _CODE.sub("", (_ROOT / page).read_text(encoding="utf-8"))
    return [posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in _LINK.findall(text)]
