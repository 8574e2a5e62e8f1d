"""The frame of a self-contained HTML page: light and dark, on a desk and on a phone."""

from __future__ import annotations

from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #5b6470; --paper: #ffffff; --rule: #e3e6ea; --load: #c9d1da;
  --card: #f6f7f9; --own: #1668c7; --warm: #b3561b; --good: #1a7f4b; --bad: #b42318;
  --s0: #1668c7; --s1: #22826a; --s2: #b3561b; --s3: #7a4fb8; --s4: #ad8a00; --s5: #b83a6f; --s6: #4b7d1f;
  --s7: #5c6f86; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa4b0; --paper: #14171b; --rule: #2b3138;
  --load: #3a434d; --card: #1c2127; --own: #6aa9f5; --warm: #ec9a5c; --good: #58c38c; --bad: #ff8a7d;
  --s0: #6aa9f5; --s1: #58c3a5; --s2: #ec9a5c; --s3: #b597ea; --s4: #d9be4a; --s5: #ef86b2; --s6: #9bcb66;
  --s7: #9fb0c5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 980px; padding: 24px 20px 60px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0 0 2px; } h2 { font-size: 18px; margin: 36px 0 4px; }
p { color: var(--soft); margin: 2px 0 8px; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg text.small { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--rule); } .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } th { color: var(--soft); font-weight: 600; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin: 0 5px 0 14px; }
.key:first-child { margin-left: 0; }
@media (max-width: 640px) { body { padding: 16px 14px 40px; } h1 { font-size: 21px; } }
"""


def page(title: str, style: str, body: str) -> str:
    """The whole text; ``body`` is escaped already.

    >>> page("a < b", "", "<h1>x</h1>").count("a &lt; b")
    1
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head><body>{body}</body></html>\n"
    )
