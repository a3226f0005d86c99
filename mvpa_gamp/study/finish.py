"""The end of a run: page, manifest, last lines on the terminal, and whether every promised file is there."""

from pathlib import Path

from mvpa_gamp.imaging.disk import WriteError
from mvpa_gamp.report.cautions import cautions, leaks
from mvpa_gamp.report.page import build_report
from mvpa_gamp.report.terminal import averages, beyond_the_table, closing_lines, whole_table
from mvpa_gamp.results.names import FITS
from mvpa_gamp.results.reader import (
    Results,
    ResultsError,
    missing_files,
    read_results,
    verify,
    write_manifest,
)
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.lock import FolderLock, check_lock
from mvpa_gamp.study.output import Output, check_plain

_MOST_STORED = 50_000_000  # bytes of fits that a finished run keeps: a few seconds of work for a large brain


def finish(output: Output, console: Console) -> int:
    """Page, manifest, the full table, and a last look whether everything promised is there."""
    results = read_results(output.root)
    write_manifest(results)
    page = build_report(output.root)
    _print_what_is_new(results, console)
    for text in beyond_the_table(results):
        console.result(text + "\n", always=True)
    for caution in cautions(results)[len(leaks(results)) :]:  # leaks were told before the first fit
        console.note(f"Caution: {caution}")
    code = _verdict(output.root, console)
    if code == 0 and not output.keep_fits:
        _drop_large_fits(output.stored, console)
    for line in closing_lines(results, page):
        console.note(line)
    return code


def _drop_large_fits(stored: Path, console: Console) -> None:
    """Remove the fits of a finished run where they are large: --resume makes them again."""
    fits = list(stored.glob(f"*{FITS}"))
    size = sum(path.stat().st_size for path in fits)
    if size > _MOST_STORED:
        for path in fits:
            path.unlink()
        console.note(
            f"Stored fits ({size / 1e6:,.0f} MB) were removed, because the run is finished. --resume makes "
            "them again if tests are added; --keep-fits keeps them."
        )


def _print_what_is_new(results: Results, console: Console) -> None:
    """The averages, since rows were printed as they came; a quiet run printed none and has the table."""
    if not console.level:
        console.result(whole_table(results, console.width) + "\n", always=True)
    elif len(results.tasks) > 1:
        console.result(averages(results) + "\n")


# What comes up where a table or a summary is whole, but says something odd.
UNREADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)


def rebuild_report(root: Path, console: Console) -> int:
    """--reports-only: figures and page from the folder alone."""
    output = Output(root, resume=True)
    check_plain(root, "--reports-only")
    try:
        check_lock(output.folder, output.owner)
        verify(root, console.note)
        with FolderLock(output.folder, output.owner) as lock:
            lock.take()
            console.note(f"Page: {build_report(root)}")
    except (StudyError, WriteError):
        raise
    except ResultsError as error:
        raise StudyError(f"--reports-only: {error}") from error
    except UNREADABLE as error:
        raise StudyError(
            f"--reports-only: a file of {root} is missing or damaged ({one_line(error)}). Write the files "
            "again from the stored fits: the same command with --resume."
        ) from error
    return _verdict(root, console)


def one_line(error: Exception) -> str:
    """What an error says, without its line breaks."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _verdict(root: Path, console: Console) -> int:
    """0 only when no cell failed and no promised file is missing."""
    results = read_results(root)
    missing = missing_files(results)
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    for path in missing:
        console.note(f"missing: {path}", level=0)
    if missing:
        console.note("Write what is missing: the same command with --resume.", level=0)
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    failed += [{**row, "comparison": row["cross"]} for row in results.cross_rows() if row["status"] != "ok"]
    for row in failed:
        console.note(f"{row['comparison']}, {row['method']}: {row['status']}", level=0)
    troubles = results.summary.regions.get("troubles", {})
    for name, trouble in troubles.items():
        console.note(f"{name}, regions: {trouble}", level=0)
    return 1 if missing or failed or troubles else 0
