"""Every link of the finished site that stays on it leads somewhere: links.py FOLDER.

Sphinx warns of pages and headings that are not there; this also sees what themes, pictures and raw HTML refer to.
"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def read(path):
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: read(path) for path in folder.rglob("*.html")}
    wrong, seen = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.relative_to(folder)}: {link} is not there")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                wrong.append(f"{path.relative_to(folder)}: {link}: the page has no such place")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    print(f"links: {seen} on {len(pages)} pages" + (f", {len(wrong)} lead nowhere" if wrong else ", all good"))
    sys.exit(1 if wrong else 0)


main()
