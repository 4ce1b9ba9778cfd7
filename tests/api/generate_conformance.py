#!/usr/bin/env python3
"""Turns the tables into C: generate_conformance.py OUTPUT

A source for C11 and C++17 that holds nothing but static assertions: the size and alignment of every structure, the
offset, size and exact type of every field, the value and type of every enumerator, the exact type of every function and
typedef.
"""

import re
import sys

import api_tables as api

PROLOGUE = """// Generated from tests/api/tables by generate_conformance.py.
#include <bnns/bnns.h>
#include <stddef.h>

// In C a type is compared by _Generic through a pointer to it, so that arrays and qualifiers count.
#ifdef __cplusplus
#include <type_traits>
#define CHECK(condition, text) static_assert(condition, text)
#define ALIGNMENT(type) alignof(type)
#define FIELD_IS(type, field, field_type, pointer) std::is_same<decltype(type::field), field_type>::value
#define FUNCTION_IS(function, type, pointer) std::is_same<decltype(function), type noexcept>::value
#define TYPE_IS(type, expected) std::is_same<type, expected>::value
#define ENUM_IS(name) (std::is_enum<name>::value && std::is_same<std::underlying_type<name>::type, uint32_t>::value)
#define ENUMERATOR_IS(enumerator, name) std::is_same<decltype(enumerator), name>::value
#else
#define CHECK(condition, text) _Static_assert(condition, text)
#define ALIGNMENT(type) _Alignof(type)
#define FIELD_IS(type, field, field_type, pointer) _Generic(&((type*)0)->field, pointer: 1, default: 0)
#define FUNCTION_IS(function, type, pointer) _Generic(&function, pointer: 1, default: 0)
#define TYPE_IS(type, expected) _Generic((type)0, expected: 1, default: 0)
#define ENUM_IS(name) TYPE_IS(name, uint32_t)
#define ENUMERATOR_IS(enumerator, name) (sizeof(enumerator) == sizeof(name))
#endif
"""


def pointer_to(field_type):
    """`size_t[8][2]` -> `size_t (*)[8][2]`."""
    base, bounds = re.fullmatch(r"([^\[]*)(.*)", field_type).groups()
    return f"{base} (*){bounds}" if bounds else f"{base} *"


def layout():
    yield PROLOGUE
    for row in api.rows("typedefs"):
        name, declaration = row["name"], api.plain(row["declaration"])
        if row["kind"] == "macro":
            yield f'CHECK({name} == {declaration}, "{name}");'
        else:
            expected = re.sub(rf"\s*\b{name}\b", "", declaration)
            yield f'CHECK(TYPE_IS({name}, {expected}), "type of {name}");'
    for name in dict.fromkeys(row["enum"] for row in api.rows("enums")):
        yield f'CHECK(ENUM_IS({name}), "{name} is uint32_t");'
    for row in api.rows("enums"):
        yield f'CHECK({row["enumerator"]} == {row["value"]}, "value of {row["enumerator"]}");'
        yield f'CHECK(ENUMERATOR_IS({row["enumerator"]}, {row["enum"]}), "type of {row["enumerator"]}");'
    for row in api.rows("structs"):
        struct, field = row["struct"], row["field"]
        if field == "-":
            yield f'CHECK(sizeof({struct}) == {row["size"]}, "size of {struct}");'
            yield f'CHECK(ALIGNMENT({struct}) == {row["alignment"]}, "alignment of {struct}");'
            continue
        where, c_type = f"{struct}.{field}", api.plain(row["type"])
        yield f'CHECK(offsetof({struct}, {field}) == {row["offset"]}, "offset of {where}");'
        yield f'CHECK(sizeof((({struct}*)0)->{field}) == {row["size"]}, "size of {where}");'
        yield f'CHECK(FIELD_IS({struct}, {field}, {c_type}, {pointer_to(c_type)}), "type of {where}");'
    for row in api.rows("functions"):
        name, parameters = row["function"], api.plain(row["parameters"])
        yield (f'CHECK(FUNCTION_IS({name}, {row["return_type"]}({parameters}), {row["return_type"]} (*)({parameters})),'
               f' "type of {name}");')


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        output.writelines(line + "\n" for line in layout())


if __name__ == "__main__":
    main()
