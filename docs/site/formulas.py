"""Formulas for Sphinx, made into HTML by KaTeX while the site is built.

Pages then need a style sheet and fonts, which are copied, but no script and no other host, and a formula that KaTeX does
not understand is a warning with its page.
"""
import json
import pathlib
import shutil
import subprocess

from docutils import nodes
from sphinx.util import logging
from sphinx.util.osutil import ensuredir

KATEX = pathlib.Path("/usr/share/javascript/katex")  # of the Debian package libjs-katex
FONTS = pathlib.Path("/usr/share/fonts/truetype/katex")  # of fonts-katex
HERE = pathlib.Path(__file__).resolve().parent
log = logging.getLogger(__name__)


class Formulas:
    """One process of node for all formulas, started by the first; equal formulas are made once."""

    def __init__(self):
        self.process = None
        self.made = {}

    def html(self, node, display):
        tex = node.astext()
        if (tex, display) not in self.made:
            self.made[tex, display] = self.ask(tex, display)
        answer = self.made[tex, display]
        if "error" in answer:
            log.warning("a formula that KaTeX refuses: %s", answer["error"], location=node)
        return answer.get("html", "")

    def ask(self, tex, display):
        if self.process is None:
            command = ["node", str(HERE / "formulas.js"), str(KATEX / "katex.min.js")]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "node ended"}


formulas = Formulas()


def visit_math(self, node):
    self.body.append(f'<span class="math">{formulas.html(node, False)}</span>')
    raise nodes.SkipNode


def visit_math_block(self, node):
    self.body.append(f'<div class="math">{formulas.html(node, True)}</div>')
    raise nodes.SkipNode


def copy_style(app, error):
    if error is None:
        folder = pathlib.Path(app.outdir, "_static", "katex")
        ensuredir(folder / "fonts")
        shutil.copy(KATEX / "katex.min.css", folder)
        for font in FONTS.glob("*.woff2"):
            shutil.copy(font, folder / "fonts")


def setup(app):
    app.add_html_math_renderer("formulas", (visit_math, None), (visit_math_block, None))
    app.add_css_file("katex/katex.min.css")
    app.connect("build-finished", copy_style)
    return {"parallel_read_safe": True}
