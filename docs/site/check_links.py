"""Every link of the built site that stays inside it leads to a page that is there, and to a place on it that is there.
Needs no network: links to elsewhere are counted only.

Usage: check_links.py FOLDER
"""
import html.parser
import os
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.places = [], {""}

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places |= {values[k] for k in ("id", "name") if values.get(k)}
        self.links += [values[k] for k in ("href", "src") if values.get(k)]


folder = pathlib.Path(sys.argv[1]).resolve()
pages = {}
for path in folder.rglob("*.html"):
    pages[path] = Page()
    pages[path].feed(path.read_text(encoding="utf-8"))
faults, checked, outside = [], 0, set()
for path, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            outside.add(link) if parts.scheme in ("http", "https") else None
            continue
        target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path))) if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        checked += 1
        if not target.exists():
            faults.append(f"{path.relative_to(folder)}: {link} leads nowhere")
        elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places and parts.fragment:
            faults.append(f"{path.relative_to(folder)}: {link}: the page has no such place")
print(f"links: {checked} inside {len(pages)} pages, {len(faults)} broken; {len(outside)} to elsewhere, not followed")
if not checked:
    faults.append(f"no links below {folder}")
sys.exit("\n".join(faults) if faults else 0)
