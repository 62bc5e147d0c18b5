"""The site: `make docs`. Pages are MyST; those with a kernel in their head are run while they are built."""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# what pages write for the reader (a report page to look at) is copied beside them at the end
EXTRA = HERE.parent / "build" / "docs-extra"
EXTRA.mkdir(parents=True, exist_ok=True)
os.environ["ISTHMUS_DOCS_EXTRA"] = str(EXTRA)
# what each kernel does first
STARTUP = HERE.parent / "build" / "docs-ipython" / "profile_default" / "startup"
STARTUP.mkdir(parents=True, exist_ok=True)
shutil.copy(HERE / "_ext" / "startup.py", STARTUP)
os.environ["IPYTHONDIR"] = str(STARTUP.parents[1])
# pages run `isthmus` as a reader does: the one of this environment, one thread to a process
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["COLUMNS"] = "88"

import isthmus  # noqa: E402 - after the environment that torch reads

project = "isthmus"
author = "The isthmus developers"
copyright = "the isthmus developers, Apache-2.0"  # noqa: A001 - the name that Sphinx reads
version = release = isthmus.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "cells",
    "commands",
    "docstrings",
    "formulas",
    "links",
    "names",
]
exclude_patterns = ["_build", "_ext"]
suppress_warnings = ["ref.python"]  # annotations are short names, which several rooms may have
default_role = "code"
smartquotes = False  # they would turn --option into a dash

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 240
nb_output_stderr = "remove"  # progress lines; an error ends the build all the same
nb_merge_streams = True

napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # shapes such as "*batch r" are no markup
napoleon_custom_sections = [("Accuracy", "notes_style"), ("Source", "notes_style")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"isthmus {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [str(EXTRA)]
html_copy_source = False
