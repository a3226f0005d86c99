from mvpa_gamp.report.tables import endings


def test_endings_that_differ_in_numbers_show_their_range():
    said = [f"converged: gap {gap} after {n} iterations" for gap, n in (("1.0e-05", 9), ("2e-6", 120))]
    assert endings([*said, "closed form"]) == [
        "2 × converged: gap 2e-6 to 1.0e-05 after 9 to 120 iterations",
        "1 × closed form",
    ]
