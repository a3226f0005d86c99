"""The one error that means: what the user gave cannot be run."""


class StudyError(ValueError):
    """Usage or data that cannot be run; the message says what was expected, what came, what to do."""
