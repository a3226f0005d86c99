"""How large each benchmark is: a quick look, or the sizes of a whole-brain study."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of all sections; ``shape`` is the phantom's grid, whose brain is a fifth of it."""

    shape: tuple[int, int, int]
    rounds: int  # times that everything timed is repeated, in turns
    voxels: tuple[int, ...]  # growth in N, at 216 rows and 12 columns
    rows: tuple[int, ...]  # growth in M, at ``usual_voxels`` and 12 columns
    columns: tuple[int, ...]  # growth in B, at ``usual_voxels`` and 216 rows
    usual_voxels: int
    iterations: int  # per timed solve
    starts: int  # fresh processes per start-up time
    permutations: int = 1000  # of one comparison
    region_voxels: int = 577  # of a region, such as the ventral temporal mask of Haxby's first participant
    standard_shape: tuple[int, int, int] = (91, 109, 91)  # the usual grid of 2 mm
    standard_voxels: int = 230_000
    small_shape: tuple[int, int, int] = (12, 14, 12)  # of participants with ``region_voxels``
    brain_voxels: int = 223_707  # of maps of participants at 2 mm
    people: int = 59


USUAL_ROWS = 216  # two categories of nine volumes in twelve runs
USUAL_COLUMNS = 12  # one fold per run

QUICK = Sizes(
    shape=(26, 41, 41),  # 8,376 voxels
    rounds=3,
    voxels=(2_000, 8_000, 31_250),
    rows=(108, 216, 432),
    columns=(1, 12, 96),
    usual_voxels=8_000,
    iterations=6,
    starts=3,
    permutations=30,
    standard_shape=(46, 55, 46),
    standard_voxels=29_000,
    brain_voxels=20_000,
    people=12,
)
FULL = Sizes(
    shape=(40, 64, 64),  # 31,398 voxels
    rounds=5,
    voxels=(8_000, 31_250, 125_000, 250_000),
    rows=(54, 108, 216, 432, 864),
    columns=(1, 12, 96, 336),
    usual_voxels=31_398,
    iterations=12,
    starts=7,
)
