"""Mathematics as MathML, written when the pages are built.

Browsers display MathML by themselves, so that the pages load no script and need no
network, no TeX and no images.
"""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.locale import get_translation
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
_ = get_translation("sphinx")


def to_mathml(latex, display, node):
    """Return MathML; a command that the converter does not know is a warning."""
    # Sphinx lets several lines stand without an environment, as TeX does not.
    if r"\\" in latex and r"\begin{" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    # The converter knows the double bar, but not behind \big and its like.
    mathml = convert(latex, display=display).replace(r">\|<", ">&#x2016;<")
    if "\\" in mathml:
        logger.warning("mathematics not understood: %s", latex, location=node)
    return mathml


def visit_inline(self, node):
    """Write an inline formula."""
    self.body.append(to_mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a displayed formula, with its number if it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append(to_mathml(node.astext(), "block", node))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
