"""Settings, versions, notes and files: what is needed to repeat a run."""

from mvpa_gamp.report.markup import details, file_link, folded, text
from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.reader import Results


def record_section(results: Results) -> str:
    """Settings first, then versions, origins, method settings and the files of the folder."""
    notes = "".join(f"<li>{text(note)}</li>" for note in results.summary.data["notes"])
    versions = "\n".join(f"{k}: {v}" for k, v in read_json(results.folder.environment).items())
    return folded(
        "record",
        "Settings, versions and files",
        "What is needed to repeat the run.",
        f"<ul>{notes}</ul>" if notes else "",
        _files(results),
        f"<pre>{text(_study_settings(results))}</pre>",
        details("Versions and machine", f"<pre>{text(versions)}</pre>"),
        details("Where the data came from", f"<pre>{text(_provenance(results))}</pre>"),
        details("What each method was set to", f"<pre>{text(_settings(results))}</pre>"),
    )


def _files(results: Results) -> str:
    """Links to the files of the whole run."""
    folder = results.folder
    files = [
        folder.summary,
        folder.timings,
        folder.study,
        folder.config,
        folder.cobidas,
        folder.manifest,
        folder.log,
    ]
    for sub in results.subjects:
        files += [
            folder.subject_table(sub, name)
            for name in ("consistency", "confusion", "clusters", "inference", "information")
        ]
        files += [folder.mask(sub), folder.background(sub)]
    links = [file_link(path, folder.root, results.linked) for path in files if path.is_file()]
    by = "" if results.linked else "to_bids(folder) writes "
    return f'<p class="files">{by}{", ".join(links)}</p>'


def _study_settings(results: Results) -> str:
    """config.toml, or the settings of a decoder."""
    own = results.summary.settings
    if own:
        return "\n".join(f"{name}: {value}" for name, value in own.items())
    return results.folder.config.read_text(encoding="utf-8")


def _provenance(results: Results) -> str:
    """Where the data came from, one line per item."""
    return "\n".join(f"{key}: {value}" for key, value in results.summary.data["provenance"].items())


def _settings(results: Results) -> str:
    """The settings of every method object."""
    return "\n\n".join(f"{method['name']}: {method['settings']}" for method in results.methods)
