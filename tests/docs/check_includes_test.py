"""scripts/check-includes passes on this tree, and finds each kind of wrong include in a small tree that has one."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = {
    "src/core/error.h": "",
    "src/simd/loops-inl.h": '#include "src/core/error.h"',
    "src/gemm/gemm.h": '#include "src/simd/loops-inl.h"',
    "src/filter/filter.h": '#include "src/core/error.h"',
    "src/engine/copy/copy.h": '#include "src/gemm/gemm.h"\n#include "src/filter/filter.h"',
    "src/ops/loss/loss.h": '#include "src/engine/copy/copy.h"',
    "src/ops/loss/loss_plan.h": "",
    "src/ops/loss/loss_ref.h": '#include "src/ops/loss/loss.h"',
    "src/ops/fused/fused.h": '#include "src/ops/loss/loss.h"',
    "src/ops/fused/tests/fused_test.cc": '#include "src/ops/loss/loss_ref.h"\n#include "tests/support/testing.h"',
    "src/mps/device.h": '#include "src/core/error.h"',
    "src/ops/mps_pooling/mps_pooling.h": '#include "src/mps/device.h"',
    "src/c_api/filter_bnns.cc": '#include "src/filter/filter.h"\n#include "bnns/bnns.h"',
}
WRONG = [  # file, the include added to it, what the message has
    ("src/core/error.h", "src/simd/loops-inl.h", "core/ may include nothing else"),
    ("src/gemm/gemm.h", "src/ops/loss/loss.h", "gemm/ may include"),
    ("src/filter/filter.h", "src/engine/copy/copy.h", "filter/ may include"),
    ("src/engine/copy/copy.h", "src/ops/loss/loss.h", "engine/ may include"),
    ("src/c_api/filter_bnns.cc", "src/ops/loss/loss.h", "c_api/ may include"),
    ("src/mps/device.h", "src/ops/mps_pooling/mps_pooling.h", "mps/ may include"),
    ("src/ops/loss/loss.h", "src/mps/device.h", "ops/ may include"),
    ("src/ops/loss/loss.h", "src/ops/mps_pooling/mps_pooling.h", "included by nobody else"),
    ("src/ops/fused/fused.h", "src/ops/loss/loss_plan.h", "of another operator only loss.h"),
    ("src/ops/fused/tests/fused_test.cc", "src/ops/loss/loss_plan.h", "of another operator only loss.h"),
    ("src/ops/loss/loss_plan.h", "src/ops/loss/loss_ref.h", "a product file includes a test's file"),
    ("src/ops/loss/loss.h", "tests/support/testing.h", "a product file includes a test's"),
    ("src/ops/loss/loss.h", "src/ops/fused/fused.h", "cycle of operators and engines: ops/fused -> ops/loss -> ops/fused"),
    ("src/ops/loss/loss.h", "src/attic/old.h", "attic/ has no place"),
    ("src/core/error.h", "src/core/error.h", "cycle of files: src/core/error.h -> src/core/error.h"),
    ("src/core/error.h", "src/core/absent.h", "src/core/absent.h does not exist"),
]


def check(root):
    return subprocess.run([sys.executable, "-B", ROOT / "scripts/check-includes", "--root", root], capture_output=True,
                          text=True, check=False)


def check_small_tree(extra):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GOOD.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "".join(f'\n#include "{include}"\n' for file, include in extra if file == name))
        return check(folder)


done = check_small_tree([])
assert done.returncode == 0, done.stderr
for file, include, message in WRONG:
    done = check_small_tree([(file, include)])
    assert done.returncode == 1 and message in done.stderr, (file, include, message, done.stderr)
done = check(ROOT)
sys.exit(done.stderr if done.returncode else 0)
