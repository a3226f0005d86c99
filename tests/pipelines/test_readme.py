"""The README's picture and the table beside it come from one run."""

import csv
import json

from pipelines import readme


def test_picture_table_and_record(tmp_path, capsys):
    assert readme.main(["--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{readme.PICTURE}.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / f"{readme.PICTURE}.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["gamp-sbg-lr", "l1-lr-cv"]
    record = json.loads((tmp_path / f"{readme.PICTURE}.json").read_text())
    assert "--phantom" in json.dumps(record) and rows[0]["accuracy_percent"] in capsys.readouterr().out
