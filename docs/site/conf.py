"""The site: pages of docs/ as they are, the man pages and the public headers. scripts/site lays out what this reads."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

project = "Thiele"
copyright = "the authors of Thiele"
version = release = re.search(r"project\(thiele.*?VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.DOTALL)[1]

extensions = ["myst_parser", "breathe", "formulas"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_dmath_allow_digits = False
myst_heading_anchors = 4  # links to headings, as they work elsewhere
myst_update_mathjax = False
html_math_renderer = "formulas"
exclude_patterns = ["site", "man"]
nitpicky = True
nitpick_ignore_regex = [("c:identifier", r"(u?int\d+_t|size_t|ptrdiff_t|FILE)")]
smartquotes = False  # code and options are quoted as they are typed
highlight_language = "text"

breathe_projects = {"thiele": str(ROOT / "xml")}
breathe_default_project = "thiele"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False

html_theme = "furo"
html_title = f"Thiele {release}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5a8a", "color-brand-content": "#1b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7db8e8", "color-brand-content": "#7db8e8"},
}
