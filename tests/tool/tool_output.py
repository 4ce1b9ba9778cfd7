"""What the program says when things go wrong, and how it looks: unknown commands, lost output, Ctrl-C, 40 columns."""
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import termios

TOOL = sys.argv[1]
SMALL = ["--model", "mlp", "--train-size", "600", "--test-size", "200", "--epochs", "3", "--hidden", "16"]
LONG = ["--model", "mlp", "--train-size", "2000", "--test-size", "200", "--epochs", "10000", "--hidden", "16"]


def run(*options, code, **more):
    more.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([TOOL, *options], stderr=subprocess.PIPE, text=True, check=False, timeout=120, **more)
    print(options[:2], done.returncode, done.stderr.strip())
    assert done.returncode == code, f"{options}: exit code {done.returncode}, expected {code}: {done.stderr}"
    return done


def one_line(text, *parts):
    assert text.count("\n") == 1 and text.endswith("\n"), f"{text!r} is not one line"
    for part in parts:
        assert part in text, f"{text!r} does not say {part!r}"


def unknown_words():
    one_line(run("foo", code=2).stderr, "foo is not a command", "did you mean info?", "train")
    one_line(run("trian", "--epochs", "2", code=2).stderr, "trian is not a command", "did you mean train?")
    one_line(run("", code=2).stderr)
    one_line(run("train", "--epoch", "2", code=2).stderr, "--epoch is not an option", "did you mean --epochs?")
    one_line(run("train", "--frobnicate", code=2).stderr, "--frobnicate is not an option of bnns train (see")
    one_line(run("train", "--epochs=0", code=2).stderr, "--epochs: 0 is not in the range 1 to 10000")
    one_line(run("train", "--epochs", code=2).stderr, "--epochs: N is missing")
    one_line(run("train", "--epochs", "2", "--epochs=2", code=2).stderr, "--epochs is given twice, expected once")
    one_line(run("train", "--epochs", "three", code=2).stderr, "--epochs: three is not a number (")
    one_line(run("train", "--epochs", "1.5", code=2).stderr, "--epochs: 1.5 is not a whole number (")
    one_line(run("train", "--lr", "0,01", code=2).stderr, "--lr: 0,01 is not a number, expected a point: 0.01 (")
    one_line(run("train", "--seed", "-1", code=2).stderr, "--seed: -1 is not in the range 0 to")
    one_line(run("train", "--quiet=1", code=2).stderr, "--quiet takes no value")
    one_line(run("train", "now", code=2).stderr, "now was not expected")
    one_line(run("train", "--model", "rnn", code=2).stderr, "--model: rnn is not cnn or mlp or resnet or lstm")
    one_line(run("--frobnicate", code=2).stderr, "--frobnicate is not an option of bnns (see bnns --help)")
    one_line(run("predikt", code=2).stderr, "predikt is not a command", "did you mean predict?")
    one_line(run("train", "--data", "", code=2).stderr, "--data is empty", "a folder")
    one_line(run("train", *SMALL, "--report", "", code=2).stderr, "--report is empty", "a file name")


def lost_output(folder):
    with open("/dev/full", "w", encoding="utf-8") as full:
        for options in (["--help"], ["--version"], ["info"], ["info", "--json"], ["train", *SMALL, "--no-report"],
                        ["train", *SMALL, "--no-report", "--quiet"], ["train", *SMALL, "--no-report", "--json"]):
            one_line(run(*options, code=1, stdout=full).stderr.splitlines(True)[-1], "output was lost",
                     "No space left on device")
        # Nothing is trained where nothing can be said: the first lines are looked at before.
        run("train", *LONG, "--no-report", code=1, stdout=full)
    done = run("train", *SMALL, "--report", "/dev/full", code=1)
    one_line(done.stderr, "/dev/full: the report could not be written", "No space left on device")
    assert "accuracy" in done.stdout and "report  " not in done.stdout, done.stdout

    # A file that may not grow, as on a full disk: the figures stay, half a report does not.
    report = folder / "report.html"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    for options in ([], ["--json", "--quiet"]):
        done = run("train", *SMALL, *options, "--report", str(report), code=1, preexec_fn=limit, restore_signals=False)
        one_line(done.stderr, "report.html: the report could not be written", "File too large")
        assert not report.exists(), "half a report"
    assert json.loads(done.stdout)["report"] is None


def interrupted(folder):
    report = folder / "interrupted.html"
    for options in ([], ["--json"]):
        report.unlink(missing_ok=True)
        process = subprocess.Popen([TOOL, "train", *LONG, *options, "--report", str(report)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        lines = process.stderr if options else process.stdout
        seen = ""
        while "epoch     2/" not in seen:
            line = lines.readline()
            assert line, f"ended before the second epoch: {seen}"
            seen += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, (process.returncode, err)
        said = err if options else out
        assert "stopped    by Ctrl-C in epoch" in said and str(report) in said, said
        assert options or err == "", err
        html = report.read_text(encoding="utf-8")
        assert html.rstrip().endswith("</html>") and "by Ctrl-C in epoch" in html
        if options:
            figures = json.loads(out)
            assert figures["interrupted"] is True and 2 <= len(figures["epoch_loss"]) < 10000
    # Where the caller ignores Ctrl-C, so does the tool.
    process = subprocess.Popen([TOOL, "train", *SMALL[:-4], "--epochs", "40", "--no-report", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    while "epoch  2/" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and json.loads(out)["interrupted"] is False, (process.returncode, out)


def draw(options, columns, code=0, interrupt_after=None):
    """Runs on a pseudo-terminal of so many columns; returns the bytes, and the lines that stay on the screen."""
    main_end, tool_end = pty.openpty()
    fcntl.ioctl(tool_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen([TOOL, *options], stdout=tool_end, stderr=tool_end, env=environment)
    os.close(tool_end)
    drawn = b""
    while True:
        try:
            part = os.read(main_end, 65536)
        except OSError:
            break
        drawn += part
        if interrupt_after and interrupt_after in drawn:
            process.send_signal(signal.SIGINT)
            interrupt_after = None
    os.close(main_end)
    assert process.wait() == code, drawn.decode()
    text = re.sub(r"\x1b\[\d*m", "", drawn.decode())
    screen = []
    for line in text.replace("\r\n", "\n").split("\n"):
        kept = ""
        for piece in line.split("\r"):
            kept = piece.split("\x1b[K")[0] if "\x1b[K" in piece else piece + kept[len(piece):]
            assert len(kept) <= columns, f"{len(kept)} characters on a terminal of {columns}: {kept!r}"
        screen.append(kept)
    return text, screen


def terminals():
    for columns in (40, 60, 80, 200):
        _, screen = draw(["train", *SMALL, "--no-report"], columns)
        epochs = [line for line in screen if re.match(r"epoch [123]/3", line)]
        assert len(epochs) == 3, f"every epoch's line stays: {screen}"
        assert all("loss" in line and "held out" in line for line in epochs), epochs
        for options in (["--help"], ["train", "--help"], ["info"], ["info", "--help"]):
            draw(options, columns)
        draw(["train", "--epochs", "0"], columns, code=2)
    # The longest lines: four-digit epochs, and one that Ctrl-C ends.
    _, screen = draw(["train", *LONG, "--no-report"], 40, code=130, interrupt_after=b"    3/10000")
    assert any("by Ctrl-C" in line for line in screen), screen
    draw(["train", *SMALL, "--no-report"], 24)
    # Of many epochs every third stays, and the last.
    _, screen = draw(["train", *SMALL[:-4], "--hidden", "16", "--epochs", "100", "--no-report"], 80)
    stayed = [int(found[1]) for line in screen if (found := re.match(r"epoch +(\d+)/100", line))]
    assert stayed == [*range(3, 100, 3), 100], screen
    _, screen = draw(["train", *SMALL[:-4], "--hidden", "16", "--epochs", "100", "--patience", "1", "--no-report"], 80)
    stayed = [line for line in screen if line.startswith("epoch")]
    assert len(stayed) < 40 and screen[screen.index(stayed[-1]) + 1].startswith("stopped    after epoch " + stayed[-1].split("/")[0].split()[1]), screen


with tempfile.TemporaryDirectory() as temporary:
    unknown_words()
    lost_output(pathlib.Path(temporary))
    interrupted(pathlib.Path(temporary))
try:
    for end in pty.openpty():
        os.close(end)
except OSError as error:
    print(f"not checked: terminals ({error})")
    sys.exit(0)
terminals()
