"""Formulas as MathML, written when the site is built: browsers draw it without any script."""

from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

# What the converter does not know, in words that it knows.
WORDS = {r"\arg\max": r"\mathrm{argmax}", r"\arg\min": r"\mathrm{argmin}"}


def as_mathml(text, **options):
    """Convert a formula."""
    for word, known in WORDS.items():
        text = text.replace(word, known)
    return convert(text, **options)


def inline(self, node):
    """Write a formula within a line."""
    self.body.append(as_mathml(node.astext()))
    raise SkipNode


def block(self, node):
    """Write a formula of its own; a row of ``aligned`` needs no environment."""
    text = node.astext().strip()
    is_aligned = r"\\" in text and r"\begin" not in text
    text = rf"\begin{{aligned}}{text}\end{{aligned}}" if is_aligned else text
    self.body.append(f'<div class="math-block" tabindex="0" role="math" title="{escape(text)}">')
    self.body.append(as_mathml(text, display="block") + "</div>\n")
    raise SkipNode


def setup(app):
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
