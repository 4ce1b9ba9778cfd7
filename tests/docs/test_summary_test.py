"""scripts/test-summary prints why a test was skipped: GoogleTest's reason without its source line, a script's last line.

Usage: test_summary_test.py CTEST
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a GoogleTest binary leaves behind: one case passed, one skipped.
BINARY = """import os
folder = os.environ["GTEST_OUTPUT"].removeprefix("xml:")
open(folder + "fake_test.xml", "w").write('''<?xml version="1.0"?><testsuites><testsuite name="Fake">
<testcase name="Runs" classname="Fake"/>
<testcase name="Waits" classname="Fake"><skipped message="/src/fake_test.cc:75&#x0A;needs a moon&#x0A;and a tide"/></testcase>
</testsuite></testsuites>''')
"""
SCRIPT = "import sys; print('looked around'); print('skipped: no telescope here'); sys.exit(77)\n"

with tempfile.TemporaryDirectory() as folder:
    build = pathlib.Path(folder)
    (build / "binary.py").write_text(BINARY, encoding="utf-8")
    (build / "script.py").write_text(SCRIPT, encoding="utf-8")
    (build / "CTestTestfile.cmake").write_text(
        f'add_test(fake_test "{sys.executable}" "{build}/binary.py")\n'
        f'add_test(fake_script "{sys.executable}" "{build}/script.py")\n'
        "set_tests_properties(fake_script PROPERTIES SKIP_RETURN_CODE 77)\n", encoding="utf-8")
    path = os.path.dirname(sys.argv[1]) + os.pathsep + os.environ["PATH"]
    done = subprocess.run([sys.executable, "-B", ROOT / "scripts/test-summary", folder], capture_output=True, text=True,
                          env={**os.environ, "PATH": path}, check=False)
print(done.stdout, done.stderr)
assert done.returncode == 0, done.returncode
lines = done.stdout.splitlines()
assert "  skipped: Fake.Waits: needs a moon and a tide" in lines
assert "  skipped: fake_script: no telescope here" in lines
assert "fake_test.cc:75" not in done.stdout
assert lines[-1] == "1 passed, 0 failed, 1 skipped; 1 of the other entries skipped", lines[-1]
