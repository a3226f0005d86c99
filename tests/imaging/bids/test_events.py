import numpy as np
import pytest

from mvpa_gamp.imaging.bids.events import Event, label_volumes, read_events, trial_types
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels, shift_labels


def written(tmp_path, text):
    path = tmp_path / "sub-01_events.tsv"
    path.write_text(text)
    return path


def test_events_are_read_in_order_and_nameless_ones_left_out(tmp_path):
    text = "onset\tduration\ttrial_type\textra\n10\t4\thouse\tn/a\n2\t4\tface\tn/a\n20\t1\tn/a\tx\n"
    events = read_events(written(tmp_path, text))
    assert events == [Event(2.0, 4.0, "face", 3), Event(10.0, 4.0, "house", 2)]
    assert trial_types(events) == ["face", "house"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onset\tduration\n0\t1\n", "trial_type is missing"),
        ("onset\ttrial_type\n0\tface\n", "duration is missing"),
        ("onset\tduration\ttrial_type\n", "got no event"),
        ("", "got no event"),
        ("onset\tduration\ttrial_type\n0\t1\tn/a\n", "n/a in every line"),
        ("onset\tduration\ttrial_type\nsoon\t1\tface\n", "line 2: expected onset in seconds, got 'soon'"),
        ("onset\tduration\ttrial_type\n0\tn/a\tface\n", "line 2: expected duration"),
        ("onset\tduration\ttrial_type\n0\t-1\tface\n", "line 2: expected duration"),
        (
            "onset\tduration\ttrial_type\n0\t1\tface\n5\n",
            "line 3: expected duration in seconds, got 'nothing'",
        ),
    ],
)
def test_tables_that_say_nothing_are_a_sentence(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_events(written(tmp_path, text))


def test_a_volume_belongs_to_the_event_it_lies_in():
    events = [Event(2.0, 4.0, "face"), Event(8.0, 3.0, "house")]
    found = label_volumes(events, 7, t_r=2.0)
    assert found.conditions.tolist() == ["n/a", "face", "face", "n/a", "house", "house", "n/a"]
    assert found.events.tolist() == [0, 1, 1, 0, 2, 2, 0]


def test_the_lag_is_a_shift_of_whole_volumes():
    """[onset + lag, onset + duration + lag) in seconds, with lag a multiple of the TR."""
    rng = np.random.default_rng(3)
    onsets = np.cumsum(rng.uniform(6, 12, 6)).round(1) + 0.05  # no multiple of the TR ends in 5 hundredths
    events = [Event(float(t), round(float(rng.uniform(3, 5)), 1), "face") for t in onsets]
    t_r, lag, n = 1.7, 3, 60
    labels = Labels(label_volumes(events, n, t_r).conditions, np.zeros(n, dtype=int))
    times = np.arange(n) * t_r
    inside = np.zeros(n, dtype=bool)
    for event in events:
        inside |= (times >= event.onset + lag * t_r) & (times < event.onset + event.duration + lag * t_r)
    np.testing.assert_array_equal(shift_labels(labels, lag) == "face", inside)


def test_rounded_onsets_do_not_lose_a_volume():
    events = [Event(round(1 / 3 * 9, 3), round(1 / 3 * 6, 3), "a")]
    assert label_volumes(events, 20, t_r=1 / 3).events.nonzero()[0].tolist() == list(range(9, 15))


def test_short_events_hold_one_volume_and_start_time_moves_volumes():
    events = [Event(4.0, 0.0, "tap"), Event(9.0, 0.5, "tap")]
    found = label_volumes(events, 8, t_r=2.0)
    assert (found.events.nonzero()[0].tolist(), found.stretched) == ([2, 5], 2)
    late = label_volumes([Event(4.5, 2.0, "tap")], 8, t_r=2.0, start=1.0)  # volumes at 1, 3, 5, 7 ...
    assert late.events.nonzero()[0].tolist() == [2]


def test_volumes_of_two_conditions_are_left_out_unless_one_is_not_wanted():
    events = [Event(0.0, 6.0, "face"), Event(4.0, 4.0, "house")]
    both = label_volumes(events, 5, t_r=2.0)
    assert both.conditions.tolist() == ["face", "face", "n/a", "house", "n/a"]
    assert both.ambiguous == 1
    one = label_volumes(events, 5, t_r=2.0, wanted={"face"})
    assert (one.conditions == "face").sum() == 3 and one.ambiguous == 0


def test_events_outside_the_series_do_no_harm():
    found = label_volumes([Event(-3.0, 4.0, "a"), Event(100.0, 4.0, "a")], 5, t_r=2.0)
    assert found.events.tolist() == [1, 0, 0, 0, 0]
