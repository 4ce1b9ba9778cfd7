"""Sphinx's settings for the site; scripts/docs runs it on a copy of docs/ with the generated pages (stage.py)."""
import os

project = "OpenBNNS"
author = "the OpenBNNS authors"
copyright = "the OpenBNNS authors, Apache-2.0"
version = release = os.environ.get("OPENBNNS_VERSION", "")
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
language = "en"
highlight_language = "text"
nitpicky = False   # the C domain would ask for a page of size_t
c_id_attributes = ["BNNS_API"]

html_theme = "furo"
html_title = f"OpenBNNS {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_use_index = True
html_theme_options = {"navigation_with_keys": True}
