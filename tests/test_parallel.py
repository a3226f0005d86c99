"""Tasks on one process, several, and a Dask cluster of real worker processes, one of which is killed."""

import os
import signal
import socket
import time

import numpy as np
import pytest

from mvpa_gamp.parallel import check_cluster, check_workers, run_tasks

TASKS = list(range(6))
SHARED = (np.arange(10.0), 2.0)


def weighed(task, values, factor):
    return float(task * values.sum() * factor)


EXPECTED = [weighed(task, *SHARED) for task in TASKS]


@pytest.mark.parametrize("workers", [1, 2, -1])
def test_results_come_in_order(workers):
    assert list(run_tasks(weighed, TASKS, SHARED, workers)) == EXPECTED


def test_one_process_works_on_a_task_when_its_result_is_wanted():
    seen = []
    results = run_tasks(lambda task: seen.append(task) or task, TASKS, ())
    assert next(results) == 0 and seen == [0]


@pytest.mark.parametrize("workers", ["local", "local:0", "local:two", "machine:8786", "", 0])
def test_workers_that_make_no_sense_are_refused(workers):
    with pytest.raises(ValueError, match=r"--dask: expected local:N|--n-jobs: expected 1 or more"):
        check_workers(workers)


def test_a_scheduler_that_does_not_answer_is_told_at_once():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ValueError, match=r"no scheduler answers at tcp://127\.0\.0\.1"):
        check_workers(f"tcp://127.0.0.1:{port}")


def test_without_dask_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr("mvpa_gamp.parallel.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install distributed"):
        list(run_tasks(weighed, TASKS, SHARED, "local:1"))


@pytest.fixture
def cluster():
    """A scheduler at an address of its own, with a worker in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", protocol="tcp://"
    ) as found:
        yield found


@pytest.mark.filterwarnings("ignore")  # of Dask, when it ends
def test_a_worker_with_another_version_is_told_at_once(cluster, monkeypatch):
    address = cluster.scheduler_address
    check_cluster(address)
    assert list(run_tasks(weighed, TASKS, SHARED, address)) == EXPECTED
    monkeypatch.setattr("mvpa_gamp.parallel.__version__", "99.0")
    for connect in (check_cluster, lambda where: list(run_tasks(weighed, TASKS, SHARED, where))):
        with pytest.raises(ValueError, match=r"expected mvpa_gamp 99\.0 on every worker.* has \d.*Install"):
            connect(address)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_without_the_package_is_told_at_once(cluster, monkeypatch):
    monkeypatch.setattr("mvpa_gamp.parallel.locate", _nothing)
    with pytest.raises(ValueError, match=r"on every worker.* has none"):
        check_cluster(cluster.scheduler_address)


def _nothing(name):
    return None


def process_and_answer(task, values, folder):
    """Note which process works on the task; the first try of task 2 waits to be killed."""
    marker = folder / f"{task}"
    first = not marker.exists()
    marker.write_text(str(os.getpid()))
    if task == 2 and first:
        (folder / "victim").write_text(str(os.getpid()))
        time.sleep(120)
    return float(task * values.sum())


@pytest.mark.filterwarnings("ignore")  # a killed worker makes the cluster complain
def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    results = run_tasks(process_and_answer, TASKS, (np.arange(4.0), tmp_path), "local:2")
    answers = [next(results), next(results)]
    victim = tmp_path / "victim"
    for _ in range(600):
        if victim.exists() and victim.read_text():
            break
        time.sleep(0.1)
    os.kill(int(victim.read_text()), signal.SIGKILL)
    answers += list(results)
    assert answers == [6.0 * task for task in TASKS]
    assert (tmp_path / "2").read_text() != victim.read_text()
