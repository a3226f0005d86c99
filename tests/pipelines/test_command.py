"""The command line that pipelines share."""

from pathlib import Path

import pytest

from pipelines.command import Options, parse


def test_defaults_are_quick_seed_zero_and_a_folder_of_the_pipelines_name():
    options, own = parse("Draw.", [], name="some_figure")
    assert options == Options(full=False, seed=0, out=Path("figures/some_figure"))
    assert options.size == "quick"
    assert vars(own) == {}


def test_full_seed_and_out():
    options, _ = parse("Draw.", ["--full", "--seed", "7", "--out", "there"], name="some_figure")
    assert options == Options(full=True, seed=7, out=Path("there"))
    assert options.size == "full"


def test_own_arguments_are_kept_apart():
    options, own = parse(
        "Draw.",
        ["--quick", "--trials", "3"],
        lambda parser: parser.add_argument("--trials", type=int),
        name="some_figure",
    )
    assert vars(own) == {"trials": 3}
    assert not options.full


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--quick", "--full"], "not allowed with"),
        (["--seed", "-1"], "expected a whole number of at least 0, got '-1'"),
        (["--seed", "x"], "expected a whole number of at least 0, got 'x'"),
        (["--unknown"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_say_what_was_expected(argv, says, capsys):
    with pytest.raises(SystemExit):
        parse("Draw.", argv, name="some_figure")
    assert says in capsys.readouterr().err
