"""Run mvpa_gamp on Dask workers that are SLURM jobs. Not tested on a SLURM cluster."""

import sys

PARTITION, ACCOUNT = "normal", "my-account"
WORKERS, CORES, MEMORY, WALLTIME = 10, 2, "8GB", "02:00:00"
COMMAND = ["my-bids", "my-results", "participant", "--contrasts", "face:house"]
COMMAND += ["--permutations", "1000"]


def main() -> int:
    """Run the command on the workers; returns its exit code."""
    from dask_jobqueue import SLURMCluster

    from mvpa_gamp.__main__ import main as decode

    cluster = SLURMCluster(
        queue=PARTITION,
        account=ACCOUNT,
        cores=CORES,
        processes=1,  # one worker per job; a solve uses the cores itself
        memory=MEMORY,
        walltime=WALLTIME,
        job_script_prologue=[f"export OMP_NUM_THREADS={CORES}"],
    )
    with cluster:
        cluster.scale(jobs=WORKERS)
        return decode([*COMMAND, "--dask", cluster.scheduler_address])


if __name__ == "__main__":
    sys.exit(main())
