import io
import sys

from mvpa_gamp.study.console import Console


class Terminal(io.StringIO):
    def isatty(self):
        return True


def work(console):
    with console:
        console.note("begin")
        console.start(2)
        console.advance("one")
        console.result("a row of the table")
        console.advance("two")


def test_a_terminal_gets_a_bar_and_rows_stay_whole(monkeypatch):
    err, out = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdout", out)
    work(Console())
    assert "2/2" in err.getvalue()
    assert "\n[1/2" not in err.getvalue()
    assert "a row of the table\n" in out.getvalue()


def test_a_file_gets_plain_lines(capsys):
    work(Console())
    said = capsys.readouterr()
    assert said.out == "a row of the table\n"
    assert [line.split("] ")[-1] for line in said.err.splitlines()] == ["begin", "one", "two"]


def test_quiet_says_only_what_it_must(capsys, tmp_path):
    console = Console(level=0)
    console.log_to(tmp_path / "logs" / "run.log")
    work(console)
    console.result("the final table", always=True)
    console.note("SIMULATED", level=0)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("the final table\n", "SIMULATED\n")
    assert "a row of the table" in (tmp_path / "logs" / "run.log").read_text()


def test_a_log_says_when(tmp_path):
    console = Console(level=0)
    console.log_to(tmp_path / "run.log")
    console.note("two\nlines")
    stamps = [line.split(" ")[0] for line in (tmp_path / "run.log").read_text().splitlines()]
    assert len(stamps) == 2 and all(stamp.endswith("+00:00") for stamp in stamps)


def permute(console):
    with console:
        console.start(1000, 200, "permutations")
        console.advance("face vs house", minor=True, by=140)
        console.advance("face vs house", minor=True, by=660)


def test_permutations_are_counted_one_by_one(capsys, monkeypatch):
    permute(Console())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[340 of 1,000 permutations") and lines[-1].startswith("[1,000 of 1,000 perm")
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    permute(Console())
    assert "340 of 1,000 permutations" in err.getvalue()


def test_the_time_left_counts_what_this_run_did(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("mvpa_gamp.study.console.time.monotonic", lambda: now[0])
    console = Console()
    console.start(1000, 200, "permutations")
    now[0] += 60
    console.advance("", by=200)
    assert "[400 of 1,000 permutations, about 3 min left, 60 s]" in capsys.readouterr().err
    now[0] += 30
    console.advance("", by=500)
    assert "about 13 s left, 90 s]" in capsys.readouterr().err
    console.start(3)
    now[0] += 4
    console.advance("face vs house, svm")
    assert "[1/3, 94 s, about 8 s left] face vs house, svm" in capsys.readouterr().err
    now[0] += 0.1
    console.advance("face vs house, lda")
    assert "[2/3, 94 s, about 2 s left]" in capsys.readouterr().err
    now[0] -= 1
    console.advance("face vs house, lda", by=0)
    assert "[2/3, 93 s] " in capsys.readouterr().err
