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
