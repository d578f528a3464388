"""The lint finds every class of fault, says where, and lets right texts pass."""

from __future__ import annotations

import pytest

from metal import lint
from metal.kernels import KERNELS

GUARD = "const int i = int(thread_position_in_grid.x);\nif (i >= params[0]) {\n    return;\n}\n"

FAULTS = [
    ("address-space", "float* p = out;"),
    ("address-space", "const float *p = out;"),
    ("address-space", "T& last = out[3];"),
    ("address-space", "for (auto& v : values) {}"),
    ("address-space", "unsigned int* q = words;"),
    ("input-pointer", "const device float* row = x + i * 4;"),
    ("input-pointer", "device const T* row = x + i;"),
    ("input-pointer", "const constant int* p = params + 1;"),
    ("double-literal", "float y = 1.0;"),
    ("double-literal", "float y = x[0] * .5;"),
    ("double-literal", "float y = 1e-6;"),
    ("double-literal", "float y = 2.5e+3;"),
    ("double-literal", "float y = 3.;"),
    ("double-literal", "float y = 1.0L;"),
    ("unsupported-type", "double y = 1.0f;"),
    ("unsupported-type", "long long n = 3;"),
    ("unsupported-type", "unsigned long long n = 3u;"),
    ("unsupported-type", "__half h = x[0];"),
    ("unsupported-type", "_Float16 h = x[0];"),
    ("uint3", "uint3 place = thread_position_in_grid;"),
    ("uint3", "auto place = make_uint3(1u, 2u, 3u);"),
    ("uint3", "use(thread_position_in_grid);"),
    ("uint3", "auto xy = thread_position_in_grid.xy;"),
    ("metal-namespace", "float y = exp(x[i]);"),
    ("metal-namespace", "float y = 2.0f * fma(a, b, c);"),
    ("metal-namespace", "float y = ::sqrt(a);"),
    ("metal-namespace", "float y = expf(a);"),
    ("metal-namespace", "float y = fmaf(a, b, c);"),
    ("metal-namespace", "float y = std::max(a, b);"),
    ("metal-namespace", "float y = __builtin_fmaf(a, b, c);"),
    ("metal-namespace", "uint b = metal::as_type<uint>(a);"),
    ("foreign", "int j = threadIdx.x;"),
    ("foreign", "__syncthreads();"),
    ("foreign", 'printf("x");'),
    ("foreign", "static int count = 0;"),
    ("foreign", "goto end;"),
    ("foreign", "throw 1;"),
    ("foreign", "#include <cmath>"),
    ("only-metal", "threadgroup float shared[32];"),
    ("only-metal", "float y = simd_sum(a);"),
    ("only-metal", "threadgroup_barrier(mem_flags::mem_none);"),
    ("lambda", "auto f = [&](int a) { return a; };"),
    ("lambda", "auto f = [](int a) { return a; };"),
    ("array-size", "float row[n];"),
    ("array-size", "int counts[width] = {};"),
]


@pytest.mark.parametrize(("rule", "line"), FAULTS)
def test_each_class_of_fault_is_found_on_its_line(rule, line):
    findings = lint.lint(GUARD + line + "\n")
    assert (5, rule) in {(f.line, f.rule) for f in findings}, findings


def test_every_rule_has_a_fault_that_shows_it():
    elsewhere = {"recursion", "guard"}
    assert {rule for rule, _ in FAULTS} | elsewhere == set(lint.RULES)


@pytest.mark.parametrize(
    "text",
    [
        "float f(float x) { return f(x - 1.0f); }",
        "float g(float x);\nfloat f(float x) { return g(x); }\nfloat g(float x) { return f(x); }",
        "template <typename T>\nT f(T x) { return f<T>(x); }",
    ],
)
def test_recursion_is_found_direct_and_through_others(text):
    assert "recursion" in {f.rule for f in lint.lint(text, body=False)}


def test_plain_helper_functions_pass():
    text = (
        "inline float half_of(float x) { return x * 0.5f; }\n"
        "inline float quarter(float x) { return half_of(half_of(x)); }\n"
    )
    assert lint.lint(text, body=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "out[0] = T(1.0f);",
        "const int i = 0;\nout[i] = 1.0f;\nif (i > 3) {\n    return;\n}",
    ],
)
def test_a_body_without_bounds_check_is_refused(text):
    assert "guard" in {f.rule for f in lint.lint(text)}


@pytest.mark.parametrize(
    "line",
    [
        "float y = float(x[i]) * w;",
        "const float y = T(2) * x[i];",
        "const int64_t at = int64_t(i) * n + 3;",
        "const float y = 0x1e5 + 1.0f + 1e-6f + 2h;",
        "thread float* p = row;",
        "float row[4];",
        "float row[WIDTH];",
        "// a comment may say double, exp(x) and 1.0",
        "/* float* p;\n * 1.0 */ int j = 0;",
        "const float y = metal::exp(x[i]);",
        "const uint b = as_type<uint>(float(x[i]));",
        "const uint64_t h = 0x9E3779B97F4A7C15ul;",
        "out[i] = a * b;",
        "const bool both = a && b;",
        "const int kind = KIND_NAN;",
    ],
)
def test_right_lines_pass(line):
    assert lint.lint(GUARD + line + "\n") == []


@pytest.mark.parametrize("name", list(KERNELS))
def test_shipped_texts_are_clean(name):
    assert lint.lint(KERNELS[name].text) == []


def test_program_names_file_line_and_rule(tmp_path, capsys):
    path = tmp_path / "bad.metal"
    path.write_text(GUARD + "double y = 1.0;\n", encoding="utf-8")
    assert lint.main([str(path)]) == 1
    assert f"{path}:5: double-literal:" in capsys.readouterr().out
    assert lint.main([]) == 0
    assert capsys.readouterr().out == ""
