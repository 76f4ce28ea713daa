"""Parts of a self-contained HTML page; all text in them is escaped."""

import base64
import html
import io

from skident import __version__
from skident.plotting._panels import import_matplotlib

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; }
th, td { padding: .25rem 1rem .25rem 0; text-align: left; white-space: nowrap;
         border-bottom: 1px solid #ddd; }
img { max-width: 100%; display: block; }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
summary { cursor: pointer; }
.verdict { font-size: 1.4rem; font-weight: 600; }
footer { color: #6e6e6e; margin-top: 2rem; }
"""


def page(title, sections):
    """Return a whole page.

    Parameters
    ----------
    title : str
    sections : list of str
        HTML.

    Returns
    -------
    str
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{tag('title', title)}<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{tag('h1', title)}{''.join(sections)}"
        f"{tag('footer', f'skident {__version__}')}</body>\n</html>\n"
    )


def section(heading, body):
    """Return HTML with a heading; None for no heading."""
    top = "" if heading is None else tag("h2", heading)
    return f"<section>\n{top}{body}</section>\n"


def tag(name, text):
    """Return text between tags."""
    return f"<{name}>{html.escape(str(text))}</{name}>\n"


def verdict(text):
    """Return what matters most."""
    return f'<p class="verdict">{html.escape(str(text))}</p>\n'


def bullets(items):
    """Return a list; nothing for no items."""
    if not items:
        return ""
    return f"<ul>\n{''.join(tag('li', item) for item in items)}</ul>\n"


def table(head, rows, *, caption):
    """Return a table of text; nothing for no rows."""
    if not rows:
        return ""
    lines = [
        f"<tr>{''.join(tag(kind, cell).strip() for cell in cells)}</tr>\n"
        for kind, cells in [("th", head), *(("td", row) for row in rows)]
    ]
    return f"<table>\n{tag('caption', caption)}{''.join(lines)}</table>\n"


def folded(summary, body):
    """Return HTML that is shown on a click."""
    return f"<details>\n{tag('summary', summary)}{body}</details>\n" if body else ""


def picture(draw, alt):
    """Return a figure as an image, or a line that says why there is none.

    Parameters
    ----------
    draw : callable
        Draws, and returns a display.
    alt : str
        What it shows.

    Returns
    -------
    str
    """
    try:
        pyplot = import_matplotlib()
    except ImportError as error:
        return tag("p", error)
    figure, buffer = draw().figure_, io.BytesIO()
    # Without the name of the software that drew it: equal fits give equal pages.
    figure.savefig(buffer, dpi=100, metadata={"Software": None})
    pyplot.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">\n'
