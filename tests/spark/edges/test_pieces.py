from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.spark.edges.pieces import Piece, group_rows, piece_of
from sluicegate.spark.edges.shares import Slice


def read(piece: Piece) -> list[int]:
    """As Spark's Parquet reader does: the groups whose middle lies in the bytes, then the rows asked for."""
    file = pq.ParquetFile(piece.path)
    ids: list[int] = []
    for index in range(file.num_row_groups):
        group = file.metadata.row_group(index)
        columns = [group.column(i) for i in range(group.num_columns)]
        begin = columns[0].dictionary_page_offset or columns[0].data_page_offset
        middle = begin + sum(column.total_compressed_size for column in columns) // 2
        if piece.start <= middle < piece.start + piece.length:
            ids += file.read_row_group(index, columns=["id"]).column(0).to_numpy().tolist()
    return ids[piece.skip : piece.skip + piece.take]


@settings(max_examples=60)
@given(st.integers(1, 400), st.integers(1, 150), st.booleans(), st.data())
def test_a_piece_holds_the_rows_of_its_slice_and_no_others_however_the_file_is_grouped(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, dictionary: bool, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("piece") / "x.parquet"
    ids = pa.array(range(rows), pa.int64())
    pq.write_table(pa.table({"more": ids, "id": ids}), path, row_group_size=group, use_dictionary=dictionary)
    first = data.draw(st.integers(0, rows - 1))
    end = data.draw(st.integers(first + 1, rows))
    piece = piece_of(Slice(str(path), first, end), rows)
    assert read(piece) == list(range(first, end))
    starts = range(0, rows, group)
    assert piece.whole == (first in starts and (end in starts or end == rows))


def test_the_groups_of_a_file_are_told_by_its_footer(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array(range(25))}), tmp_path / "x.parquet", row_group_size=10)
    assert group_rows(str(tmp_path / "x.parquet")) == [10, 10, 5]
