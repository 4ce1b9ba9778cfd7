"""Recipes of packaging/ say what CMake says: the project's version, options that exist, files that exist."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPES = ["vcpkg/openbnns/vcpkg.json", "vcpkg/openbnns/portfile.cmake", "conan/conanfile.py", "nix/default.nix", "conda/meta.yaml"]
cmake = "\n".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*.cmake"), *ROOT.glob("src/**/CMakeLists.txt")])
version = re.search(r"project\(OpenBNNS VERSION (\S+)", cmake).group(1)
wrong = []
for name in RECIPES:
    text = (ROOT / "packaging" / name).read_text()
    for option in set(re.findall(r"(?:\b|-D)(BNNS_[A-Z_]+)\b", text)):
        if not re.search(rf"(?:option\(|set\(){option}\b", cmake):
            wrong.append(f"packaging/{name}: {option} is no option of CMake's")
    for found in re.findall(r"version\W+(?:semver\W+)?(\d+\.\d+\.\d+)\b", text):
        if found != version:
            wrong.append(f"packaging/{name}: version {found}, the project's is {version}")
    if name.endswith(".json"):
        json.loads(text)
    if name.endswith(".py"):
        compile(text, name, "exec")
# The files that the Conan recipe takes along are those that an installation needs.
for names in re.findall(r"for (?:name|folder) in \((.*?)\):", (ROOT / "packaging/conan/conanfile.py").read_text(), re.S):
    wrong += [f"packaging/conan/conanfile.py: there is no {name}" for name in re.findall(r'"([^"]+)"', names) if not (ROOT / name).exists()]
sys.exit("\n".join(wrong) or 0)
