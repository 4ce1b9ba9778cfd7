#!/usr/bin/env python3
"""Every public C header compiles alone, cleanly, in every dialect, and declares exactly what the tables say."""

import pathlib
import re
import subprocess
import sys
import tempfile

import api_tables as api

HEADERS = ["bnns/bnns.h", "bnns/bnns_constants.h", "bnns/bnns_structures.h", "bnns/bnns_extensions.h", "bnns/bnns_io.h",
           "bnns/bnns_distributed.h", "Accelerate/Accelerate.h", "vecLib/vecLib.h", "vecLib/BNNS/bnns.h", "BNNS/bnns.h"]
STANDARDS = ["c99", "c11", "c++17", "c++20"]
API_HEADERS = [header for header in HEADERS if "Accelerate" in header or header.endswith(("vecLib.h", "/bnns.h"))]

USE = """
int use(void);
int use(void) {
  static BNNSNDArrayDescriptor array;
  array.data_type = BNNSDataTypeFloat32;
  BNNSFilterDestroy(0);
  return (int)BNNSNDArrayGetDataSize(&array);
}
"""

# A module and a line that needs what it declares.
IMPORTS = {
    "Accelerate": USE + "float (*dot)(int, const float*, int, const float*, int) = cblas_sdot;\n",
    "Accelerate.vecLib": USE + "typedef vDSP_Length length;\n",
    "Accelerate.vecLib.BNNS": USE,
    "Accelerate.vecLib.cblas": "float (*dot)(int, const float*, int, const float*, int) = cblas_sdot;\n",
    "Accelerate.vecLib.clapack": "typedef __LAPACK_int integer;\n",
    "Accelerate.vecLib.vDSP": "typedef vDSP_Length length;\n",
    "Accelerate.vecLib.vForce": "void (*e)(float*, const float*, const int*) = vvexpf;\n",
    "BNNSExtensions": "const char* (*version)(void) = BNNSExtVersion;\n",
}


def compile_alone(compiler):
    for header in HEADERS:
        # Twice, because a forwarder has no guard of its own.
        source = f"#include <{header}>\n#include <{header}>\n{USE if header in API_HEADERS else ''}"
        for standard in STANDARDS:
            complaint = api.check_source(compiler, standard, source)
            if complaint:
                yield f"{compiler} {standard} {header}\n{complaint}"


def accelerate_brings_math(compiler):
    source = "#include <Accelerate/Accelerate.h>\ndouble use(double);\ndouble use(double x) { return sqrt(x); }\n"
    for standard in STANDARDS:
        complaint = api.check_source(compiler, standard, source)
        if complaint:
            yield f"{compiler} {standard} math.h\n{complaint}"


def clang_dialects():
    """Objective-C and Swift's importer see enumerations of their own type; module maps work."""
    # C calls an enumeration compatible with its underlying type, so two of them are compared.
    source = (f"#include <bnns/bnns.h>\n{USE}\n"
              "_Static_assert(_Generic((BNNSDataType)0, BNNSDataLayout: 0, default: 1), \"distinct types\");\n")
    for language, flags in (("objective-c", []), ("c", ["-D__swift__=50900"])):
        complaint = api.check_source("clang", "c11", source, flags, language)
        if complaint:
            yield f"clang {language} {flags}\n{complaint}"
    with tempfile.TemporaryDirectory() as cache:
        modules = ["-fmodules", "-fimplicit-module-maps", f"-fmodules-cache-path={cache}",
                   f"-fmodule-map-file={api.INCLUDE}/module.modulemap"]
        for language, standard in (("c", "c99"), ("c", "c11"), ("c++", "c++20")):
            for header in HEADERS:
                use = USE if header in API_HEADERS else ""
                complaint = api.check_source("clang", standard, f"#include <{header}>\n{use}", modules, language)
                if complaint:
                    yield f"clang {standard} module {header}\n{complaint}"
        # As Apple nests them: each alone, and before and after the headers that it covers.
        for module, call in IMPORTS.items():
            include = "#include <Accelerate/Accelerate.h>\n"
            for before, after in (("", ""), (include, ""), ("", include)):
                source = f"{before}@import {module};\n{after}{call}"
                complaint = api.check_source("clang", "c11", source, modules, "objective-c")
                if complaint:
                    yield f"clang {source.splitlines()[:2]}\n{complaint}"
        if not list(pathlib.Path(cache).rglob("Accelerate-*.pcm")):
            yield "clang modules: no module was built, the headers were only included"


def names(compiler, flags=()):
    command = [compiler, "-x", "c", "-std=c99", f"-I{api.INCLUDE}", *flags, "-E", "-P", "-"]
    text = subprocess.run(command, input="#include <bnns/bnns.h>\n", text=True, capture_output=True, check=True).stdout
    return text, set(re.findall(r"\bBNNS\w+", text))


def declares_exactly(compiler):
    """No name is missing from bnns.h and none is there that the tables do not have; no helper macro is left."""
    expected = {row["name"] for row in api.rows("typedefs") if row["kind"] == "typedef"}
    for table, columns in (("enums", ("enum", "enumerator")), ("structs", ("struct",)), ("functions", ("function",))):
        expected |= {row[column] for row in api.rows(table) for column in columns}
    found = names(compiler)[1]
    for name in sorted(expected - found):
        yield f"bnns.h lacks {name}"
    for name in sorted(found - expected):
        yield f"bnns.h declares {name}, which the tables do not have"
    macros = set(re.findall(r"#define (\w*BNNS\w*)", names(compiler, ["-dM"])[0]))
    allowed = {"__BNNS_HEADER__", "__BNNS_CONSTANTS_HEADER__", "__BNNS_STRUCTURES_HEADER__",
               "BNNS_MAX_TENSOR_DIMENSION"}
    for name in sorted(macros ^ allowed):
        yield f"bnns.h leaves or lacks the macro {name}"


def squeeze(text):
    return re.sub(r"\s+", "", text)


def declares_as_written():
    """What no compiler compares is that of the tables too: parameter names, nullability, the macOS releases."""
    text = (api.INCLUDE / "bnns/bnns.h").read_text(encoding="utf-8")
    for macro, keyword in (("BNNS_NONNULL", "_Nonnull"), ("BNNS_NULLABLE", "_Nullable"), ("\n///", "")):
        text = text.replace(macro, keyword)
    text = squeeze(text)
    for row in api.rows("functions"):
        deprecated = row["deprecated_macos"]
        release = f"(macOS {row['introduced_macos']}" + (")" if deprecated == "-" else f", deprecated {deprecated})")
        declaration = f"{row['return_type']} {row['function']}({row['parameters']})"
        if text.count(squeeze(f"{release} BNNS_API {declaration} BNNS_NOEXCEPT;")) != 1:
            yield f"bnns.h does not declare: {release} {declaration}"


def main():
    compilers = api.compilers()
    failures = list(declares_as_written())
    for compiler in compilers:
        failures += [*compile_alone(compiler), *accelerate_brings_math(compiler), *declares_exactly(compiler)]
    if "clang" in compilers:
        failures += clang_dialects()
    else:
        print("module.modulemap not tested: it needs clang")
    return api.report(failures, f"{len(HEADERS)} headers, {len(compilers)} compilers, {len(STANDARDS)} dialects")


if __name__ == "__main__":
    sys.exit(main())
