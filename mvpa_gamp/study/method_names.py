"""Names of the methods, written out so that --help need not import them; a test compares them."""

KNOWN_METHODS = (
    "gamp-bg-lr", "gamp-sbg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr", "gamp-l1-lr-cv",
    "vamp-bg", "vamp-sbg", "l1-lr-cv", "onebit-cs", "cdn", "tron", "svm", "lda",
)  # fmt: skip
# The paper's four, and the recommended one, which knows that voxels have neighbours.
DEFAULT_METHODS = ("l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "onebit-cs", "gamp-sbg-lr")
