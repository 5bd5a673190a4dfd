"""The ledger keeps every committed row, whatever happens to the process, and explains what it cannot do."""

import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from composer.candidate import Candidate
from composer.llm.requests import Request
from data.errors import InputError
from data.ledger import Ledger, LedgerError
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict

PROJECT = Path(__file__).parents[2]


def candidate(index: int, code: str = "x = 1\n") -> Candidate:
    return Candidate(index=index, name=f"c{index}", code=code, requested_ops=("torch.exp",), origin="rules")


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "run" / "ledger.sqlite") as opened:
        yield opened


def test_everything_comes_back_after_reopening(tmp_path):
    path = tmp_path / "ledger.sqlite"
    measured = Measurement(
        input_shapes=((2, 3), ()), eager_ms=1.5, eager_error=float("inf"), stages_done=("build",)
    )
    rejected = Verdict(
        index=1,
        id="b",
        outcome="rejected",
        reason=Reason.TOO_FAST,
        stage=Stage.RUNTIME,
        evidence={"eager_ms": 0.1},
    )
    accepted = Verdict(index=0, id="a", outcome="accepted", reason=Reason.ACCEPTED)
    with Ledger.open(path) as ledger:
        ledger.add_candidates([candidate(1), candidate(0)])
        ledger.put("a", "cpu", measured)
        ledger.replace_verdicts([rejected, accepted])
    with Ledger.open(path, create=False) as ledger:
        assert ledger.candidates() == [candidate(0), candidate(1)]
        assert ledger.get("a", "cpu") == measured
        assert ledger.get("a", "another card") is None
        assert ledger.verdicts() == [accepted, rejected]
        assert ledger.verdicts()[0].reason is Reason.ACCEPTED


def test_texts_that_are_not_utf_8_survive(ledger):
    code = "LABEL = '\ud83d'  # \x00 \u2028 \x0c \U0001f600 \udcff\n"
    ledger.add_candidates([candidate(0, code)])
    ledger.put(candidate(0, code).id, "cpu", Measurement(fault="init_failed", fault_detail="bad \udcff"))
    (back,) = ledger.candidates()
    assert (back.code, back.id) == (code, candidate(0, code).id)
    assert ledger.get(back.id, "cpu").fault_detail == "bad \udcff"


def test_a_lost_worker_is_not_a_result(ledger):
    lost = Measurement(fault="worker_lost", fault_detail="out of memory")
    ledger.put("a", "cpu", lost)
    assert ledger.get("a", "cpu") is None
    assert ledger.measurements("cpu") == {"a": lost}

    whole = Measurement(fault="timeout", fault_stage="build")
    ledger.put("a", "cpu", whole)
    ledger.put("a", "cpu", lost)
    assert ledger.get("a", "cpu") == whole, "a fault of the candidate is a result and stays"


def test_a_later_measurement_replaces_the_earlier(ledger):
    ledger.put("a", "cpu", Measurement(stages_done=("build",)))
    ledger.put("a", "cpu", Measurement(stages_done=("build", "runtime")))
    assert ledger.measurements("cpu") == {"a": Measurement(stages_done=("build", "runtime"))}


def test_a_candidate_may_be_added_twice_but_not_changed(ledger):
    ledger.add_candidates([candidate(0)])
    ledger.add_candidates([candidate(0), candidate(1)])
    with pytest.raises(InputError, match="candidate 1 is not the one of the earlier start"):
        ledger.add_candidates([candidate(2), candidate(1, "x = 2\n")])
    assert [c.index for c in ledger.candidates()] == [0, 1], "a refused batch leaves nothing behind"


def test_a_candidate_composed_again_takes_the_place_of_the_earlier_one(ledger):
    earlier = candidate(0)
    ledger.add_candidates([earlier, candidate(1)])
    ledger.put(earlier.id, "cpu", Measurement(eager_ms=0.5))
    resized = dataclasses.replace(candidate(0, "x = 2\n"), ladder_steps=2, earlier_ids=(earlier.id,))
    ledger.replace_candidates([resized])
    assert ledger.candidates() == [resized, candidate(1)]
    assert ledger.measurements("cpu") == {earlier.id: Measurement(eager_ms=0.5)}


def test_two_verdicts_for_one_index_are_refused(ledger):
    verdict = Verdict(index=3, id="a", outcome="accepted", reason=Reason.ACCEPTED)
    ledger.replace_verdicts([verdict])
    with pytest.raises(ValueError, match="two verdicts"):
        ledger.replace_verdicts([verdict, verdict])
    assert ledger.verdicts() == [verdict]


def test_another_run_is_refused_by_the_name_of_the_setting(ledger):
    ledger.claim_identity({"seed": 3, "composer": "rules"})
    ledger.claim_identity({"composer": "rules", "seed": 3})
    with pytest.raises(InputError, match=r"seed \(was 3, is 4\)") as refused:
        ledger.claim_identity({"seed": 4, "composer": "rules"})
    assert "composer" not in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match=r"catalogue \(was not recorded"):
        ledger.claim_identity({"seed": 3, "composer": "rules", "catalogue": "f00"})


def test_threads_write_at_once(ledger):
    def write(shard: int) -> None:
        for number in range(25):
            ledger.put(f"{shard}-{number}", "cpu", Measurement(n_params=number))

    threads = [threading.Thread(target=write, args=(shard,)) for shard in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.measurements("cpu")) == 200


def test_a_killed_writer_leaves_every_row_that_it_reported(tmp_path):
    path = tmp_path / "ledger.sqlite"
    writer = (
        "import sys\n"
        "from data.ledger import Ledger\n"
        "from filters.measurement import Measurement\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "for number in range(10**9):\n"
        "    ledger.put(str(number), 'cpu', Measurement(n_params=number))\n"
        "    print(number, flush=True)\n"
    )
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", writer, path],
            cwd=PROJECT, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(PROJECT)},
        )  # fmt: skip
        child.stdout.readline()
        time.sleep(0.1)
        os.kill(child.pid, signal.SIGKILL)
        reported = [int(line) for line in child.stdout.read().split()]
        child.wait()
        with Ledger.open(path) as ledger:
            stored = ledger.measurements("cpu")
            assert {str(number) for number in reported} <= stored.keys()
            assert all(stored[key] == Measurement(n_params=int(key)) for key in stored)


def test_a_full_disk_is_one_clear_line_and_the_run_goes_on_later(small_disk):
    with Ledger.open(small_disk / "ledger.sqlite") as ledger:
        ledger.put("first", "cpu", Measurement(n_params=1))
        filler = small_disk / "filler"
        fill(filler)
        with pytest.raises(LedgerError, match=r"ledger\.sqlite: the disk is full; free some space"):
            put_many(ledger)
        before = ledger.measurements("cpu")
        assert before["first"] == Measurement(n_params=1)
        filler.unlink()
        ledger.put("last", "cpu", Measurement(n_params=2))
        assert ledger.measurements("cpu") == before | {"last": Measurement(n_params=2)}


def test_a_disk_without_room_for_a_new_ledger(small_disk):
    fill(small_disk / "filler")
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: the disk is full"):
        Ledger.open(small_disk / "ledger.sqlite")


def test_a_read_only_disk(read_only):
    with pytest.raises(
        LedgerError, match="cannot be opened; check that the folder exists and may be written"
    ):
        Ledger.open(read_only / "ledger.sqlite")


def put_many(ledger: Ledger) -> None:
    for number in range(1000):
        ledger.put(str(number), "cpu", Measurement(fault_detail="x" * 5000))


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as out:
        try:
            while out.write(b"\0" * 4096):
                pass
        except OSError:
            return


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"eager_ms,compile_ms\n" * 100)
    with pytest.raises(LedgerError, match="no SQLite file; move it away"):
        Ledger.open(path)


def test_a_database_of_another_program(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(LedgerError, match="another program"):
        Ledger.open(path)


def test_a_torn_file(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        for number in range(200):
            ledger.put(str(number), "cpu", Measurement(fault_detail="x" * 500))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(LedgerError, match="damaged; move it away"), Ledger.open(path) as ledger:
        ledger.measurements("cpu")


def test_a_record_of_another_version(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.put("a", "cpu", Measurement())
    with sqlite3.connect(path) as other:
        other.execute("""UPDATE measurements SET record = '{"colour": "red"}'""")
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="unknown facts: colour"):
        ledger.get("a", "cpu")


def test_a_ledger_that_another_process_holds(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process keeps it locked"):
        Ledger.open(path, wait_seconds=0.05)
    other.close()


def test_a_place_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no ledger here"):
        Ledger.open(tmp_path / "ledger.sqlite", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.open(tmp_path / "file" / "ledger.sqlite")
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open(tmp_path)


def test_replies_are_kept_byte_for_byte_by_request_and_draw(tmp_path):
    request = Request.of({"model": "m", "messages": []})
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.keep_reply(request, b"\x00\xff first", "http://one/v1")
        ledger.keep_reply(request, b"late duplicate", "http://two/v1")
        ledger.keep_reply(request.again(), b"second draw", "http://one/v1")
    with Ledger.open(path, create=False) as ledger:
        assert ledger.reply(request) == b"\x00\xff first"
        assert ledger.reply(request.again()) == b"second draw"
        assert ledger.reply(request.again().again()) is None
        assert ledger.request(request.hash) == request.again()
        assert ledger.request("unknown") is None
        assert sorted(ledger.replies()) == [b"\x00\xff first", b"second draw"]


def test_a_candidate_takes_the_place_of_another(ledger):
    ledger.add_candidates([candidate(0), candidate(1)])
    ledger.replace_candidates([candidate(1, "y = 2\n")])
    assert ledger.candidates() == [candidate(0), candidate(1, "y = 2\n")]
