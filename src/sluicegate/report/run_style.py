"""How a run's page looks, beyond what all pages share."""

from __future__ import annotations

RUN_STYLE = (
    """
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 16px 0 12px; }
.tile { background: var(--card); border-radius: 10px; padding: 12px 14px; color: var(--soft); font-size: 13px;
  line-height: 1.35; }
.tile b { display: block; font-size: 25px; line-height: 1.25; color: var(--ink); font-variant-numeric: tabular-nums; }
.tile.good b { color: var(--good); } .tile.bad b { color: var(--bad); }
ul { color: var(--soft); margin: 4px 0; padding-left: 18px; font-size: 13.5px; }
.load { fill: var(--load); } .band { fill: var(--own); fill-opacity: .16; }
.came { stroke: var(--soft); stroke-width: 1.4; }
.guess { stroke: var(--own); stroke-width: 1.3; stroke-dasharray: 2 3; }
.main { stroke: var(--own); } .thin { stroke: var(--soft); stroke-width: 1.1; }
.goal { stroke: var(--warm); stroke-dasharray: 6 4; stroke-width: 1.3; }
svg text.goal-text { fill: var(--warm); font-size: 11px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.late { fill: var(--bad); } .move { fill: var(--ink); fill-opacity: .55; }
.stack { fill-opacity: .82; stroke: var(--paper); stroke-width: .8; }
.f-executors { stroke: var(--s0); } .f-nodes { stroke: var(--s2); stroke-dasharray: 5 3; }
.stream { fill: none; stroke: var(--soft); stroke-width: 1.5; } .end { fill: var(--soft); }
.back { stroke-dasharray: 5 4; } .box { fill: var(--card); stroke-width: 1.8; } svg text.name { font-weight: 600; }
.key.load { background: var(--load); } .key.band { background: var(--own); opacity: .4; }
.key.guess { background: none; border: 1.5px dashed var(--own); } .key.thin { background: var(--soft); }
.key.late { background: var(--bad); border-radius: 5px; }
ol { list-style: none; margin: 0; padding: 0; }
ol > li { display: flex; gap: 14px; padding: 8px 0; border-bottom: 1px solid var(--rule); }
.when { flex: 0 0 74px; color: var(--soft); font-variant-numeric: tabular-nums; }
ol b { margin-right: 12px; white-space: nowrap; } summary { cursor: pointer; padding: 8px 0; color: var(--soft); }
.hair { stroke: var(--ink); stroke-opacity: .45; }
#readout { position: fixed; left: 0; right: 0; bottom: 0; padding: 9px 20px; background: var(--ink);
  color: var(--paper); font-size: 13px; text-align: center; font-variant-numeric: tabular-nums; }
li:target { background: var(--card); } .phone { display: none; }
@media (max-width: 640px) { .desk { display: none; } .phone { display: block; }
  .tiles { grid-template-columns: 1fr 1fr; } ol > li { flex-direction: column; gap: 2px; } .when { flex: none; } }
@media print { section { break-inside: avoid; } }
"""
    + "\n".join(
        f".a{i} {{ fill: var(--s{i}); }} .b{i} {{ stroke: var(--s{i}); }} .key.k{i} {{ background: var(--s{i}); }}"
        for i in range(8)
    )
    + "\n"
)
