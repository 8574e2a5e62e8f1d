from __future__ import annotations

from itertools import combinations, product

from sluicegate.drawing import Description, Drawing, DrawnNode, LedArrow, PlacedBox, drawing_of, flow_of


def described(*nodes: DrawnNode, sources: tuple[str, ...] = ("in",), kept: tuple[str, ...] = ("out",)) -> Description:
    return Description("test", sources, nodes, kept)


CHAIN = described(DrawnNode("a", ("in",), ("x",)), DrawnNode("b", ("x",), ("out",), stateful=True))
SPLIT = described(
    DrawnNode("split", ("in",), ("left", "right")),
    DrawnNode("l", ("left",), ("l2",)),
    DrawnNode("r", ("right",), ("r2",)),
    DrawnNode("join", ("l2", "r2"), ("out",)),
)
LOOP = described(DrawnNode("try", ("in", "again"), ("tried",)), DrawnNode("judge", ("tried",), ("out", "again")))
SKIP = described(
    DrawnNode("first", ("in",), ("s",)),
    DrawnNode("second", ("s",), ("t",)),
    DrawnNode("third", ("t",), ("u",)),
    DrawnNode("last", ("u", "s"), ("out",)),
)


def boxes(drawing: Drawing) -> dict[str, PlacedBox]:
    return {box.id: box for box in drawing.boxes}


def arrows(drawing: Drawing) -> dict[tuple[str, str], LedArrow]:
    return {(arrow.origin, arrow.target): arrow for arrow in drawing.arrows}


def test_a_chain_is_a_straight_line_along_the_flow() -> None:
    placed = boxes(drawing_of(CHAIN))
    assert [placed[name].layer for name in ("source:in", "a", "b", "sink:out")] == [0, 1, 2, 3]
    assert {box.lane for box in placed.values()} == {0.0}
    assert placed["b"].stateful


def test_branches_lie_side_by_side_and_their_join_between_them() -> None:
    placed = boxes(drawing_of(SPLIT))
    assert placed["l"].layer == placed["r"].layer == 2
    assert abs(placed["l"].lane - placed["r"].lane) == 1
    middle = (placed["l"].lane + placed["r"].lane) / 2
    assert placed["join"].lane == placed["split"].lane == middle


def test_only_the_arrow_that_closes_a_loop_goes_back() -> None:
    back = {pair for pair, arrow in arrows(drawing_of(LOOP)).items() if arrow.back}
    assert back == {("judge", "try")}


def test_every_other_arrow_leads_to_a_later_layer() -> None:
    for pipeline in (CHAIN, SPLIT, LOOP, SKIP):
        drawing = drawing_of(pipeline)
        placed = boxes(drawing)
        for (origin, target), arrow in arrows(drawing).items():
            assert arrow.back or placed[target].layer > placed[origin].layer


def test_no_two_boxes_overlap_and_long_arrows_pass_beside_boxes() -> None:
    for pipeline in (CHAIN, SPLIT, LOOP, SKIP, wide(30)):
        drawing = drawing_of(pipeline)
        bends = [bend for arrow in arrows(drawing).values() for bend in arrow.bends]
        for one, other in combinations(boxes(drawing).values(), 2):
            assert one.layer != other.layer or abs(one.lane - other.lane) >= 0.99
        for box, bend in product(boxes(drawing).values(), bends):
            assert box.layer != bend.layer or abs(box.lane - bend.lane) >= 0.64


def test_a_long_arrow_bends_once_in_each_layer_it_passes() -> None:
    bends = arrows(drawing_of(SKIP))["first", "last"].bends
    assert [bend.layer for bend in bends] == [2, 3]


def test_a_source_that_spark_reads_is_drawn_too() -> None:
    found, _ = flow_of(described(DrawnNode("a", ("clicks",), ("out",)), sources=()))
    assert [box.id for box in found] == ["source:clicks", "a", "sink:out"]


def test_a_stream_that_is_both_kept_and_read_has_two_arrows() -> None:
    _, found = flow_of(
        described(DrawnNode("a", ("in",), ("out",)), DrawnNode("b", ("out",), ("more",)), kept=("out", "more"))
    )
    assert {(arrow.origin, arrow.target) for arrow in found} >= {("a", "b"), ("a", "sink:out")}


def test_a_thousand_operators_in_a_row_are_laid_out() -> None:
    names = [f"s{n}" for n in range(1001)]
    nodes = [DrawnNode(f"o{n}", (names[n],), (names[n + 1],)) for n in range(1000)]
    assert drawing_of(described(*nodes, sources=("s0",), kept=("s1000",))).layers == 1002


def wide(branches: int) -> Description:
    """One operator that sends to many, whose results one reads."""
    inner = [DrawnNode(f"b{n}", (f"s{n}",), (f"t{n}",)) for n in range(branches)]
    fan = DrawnNode("fan", ("in",), tuple(f"s{n}" for n in range(branches)))
    return described(fan, *inner, DrawnNode("all", tuple(f"t{n}" for n in range(branches)), ("out",)))
