#!/usr/bin/env python3
"""The library has no writable variable but those named here, so that no call finds another one's numbers in a buffer that both
share: writable_globals_test.py LIBRARY [NM]"""

import re
import subprocess
import sys

# Each is atomic, guarded by a lock, thread-local, or written before there are threads.
KNOWN = {
    "the instruction set": "machine_isa chosen_isa strict bytes",
    "threads, and forks counted": "default_thread_count the_pool generation",
    "what calls say": "callback callback_mutex callback_user printing watch said told known",
    "algorithms left out, and those that ran": "skips chosen_names names_are_chosen kept current_record",
    "the last error of a thread": "last_error_text",
    "calls that are recorded: counters, and memory that each thread writes for itself":
        "sites site_count other_calls chunks chunk_count calls lost began lanes own wanted trace_path started profiled",
    "copies of weights, to say that one is stale": "copies remembered_copies",
    "keys of random numbers": "first_key seeded_key next_number count",
    "kinds of generators": "kinds",
    "the first number of threads, for a promised size": "first_default",
    "numbers of temporary files": "serial",
    "addresses that nobody reads": "nothing nowhere_",
    "the compiler's": "__dso_handle __TMC_END__ __tls_guard __cpu_model __cpu_features2 completed.0",
}


def is_known(name):
    known = " ".join(KNOWN.values()).split()
    if name.startswith("_Z"):   # clang's, split into parts: ...8callbackE.0
        return any(re.search(rf"{len(own)}{own}E?\.\d+$", name) for own in known)
    return re.sub(r"\[abi:\w+\]$", "", name).split("::")[-1] in known or name.startswith("DW.ref.")


def main():
    library, nm = sys.argv[1], (sys.argv[2:] or ["nm"])[0]
    lines = subprocess.run([nm, "-C", "-f", "sysv", library], text=True, capture_output=True, check=True).stdout.splitlines()
    found, failures = 0, []
    for line in lines:
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < 7 or not re.match(r"\.t?(data|bss)$", fields[-1]) or fields[-4] not in ("OBJECT", "TLS"):
            continue
        found += 1
        name = re.sub(r"^guard variable for ", "", "|".join(fields[:-6]))
        if not is_known(name):
            failures.append(f"{name} is writable ({fields[-1]})")
    if found < 20:
        failures.append(f"only {found} variables were found: is the library stripped?")
    print("\n".join(failures) if failures else f"{found} writable variables, all known")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
