"""The installed preludes in OpenCL C and GLSL compile for each of their types with every scalar function.

Usage: preludes_test.py INCLUDE_FOLDER    (the installed folder include/)

clang checks OpenCL C, glslangValidator GLSL. A language whose compiler is missing is skipped; exit status 77 if both
are missing.
"""
import os
import shutil
import subprocess
import sys
import tempfile

OPENCL_TYPES = {
    "f32": "-DEP_T=float -DEP_FLOAT32", "f32 rounded in f64": "-DEP_T=float -DEP_FLOAT32 -DEP_ROUND_IN_FLOAT64",
    "f64": "-DEP_T=double -DEP_FLOAT64", "i8": "-DEP_T=int -DEP_U=uint -DEP_SIGNED -DEP_WIDTH=8",
    "i64": "-DEP_T=long -DEP_U=ulong -DEP_SIGNED -DEP_WIDTH=64", "bool": "-DEP_T=uint -DEP_UNSIGNED -DEP_WIDTH=1",
    "u64": "-DEP_T=ulong -DEP_UNSIGNED -DEP_WIDTH=64",
}
OPENCL = """
#include "tenon/sdk/provider/opencl/prelude.cl"
#include "tenon/sdk/provider/opencl/elements.cl"
#include "tenon/sdk/provider/opencl/rows.cl"
kernel void all(global uchar* dst, global const uchar* src, int op, int dtype) {
  const ulong i = get_global_id(0);
  const EP_T x = ep_load(src, i, dtype);
  EP_T value = ep_ternary_row(op, ep_unary_row(op, x, x, x), ep_binary_row(op, x, x), x);
  value = ep_reduce_finish(op, ep_reduce_combine(op, ep_reduce_init(op), ep_reduce_map(op, value)), x);
  ep_store(dst, i, dtype, value);
}
"""
GLSL_TYPES = {"f32": "float", "i32": "int", "u32": "uint", "i64": "int64_t", "u64": "uint64_t"}
GLSL = """#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const int WIDTH = 8;
#define CLASS_%s
#define T %s
#include "tenon/sdk/provider/glsl/prelude.glsl"
layout(binding = 0) buffer Values { T v[]; };
T as_T(T x) { return x; }
T as_T(bool x) { return x ? T(1) : T(0); }
T unary(int op, T x, T a, T b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) case id: return as_T(expression);
#include "tenon/ep_api/scalar_ops.def"
#undef EP_UNARY
  }
  return x;
}
T binary(int op, T x, T y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) case id: return as_T(expression);
#include "tenon/ep_api/scalar_ops.def"
#undef EP_BINARY
  }
  return x;
}
void main() { v[0] = binary(int(v[1]), unary(int(v[2]), v[3], v[4], v[5]), v[6]); }
"""


def check(what, command, failures):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).splitlines()
        failures.append(f"{what}: " + "\n  ".join([line for line in lines if "rror" in line][:5] or lines[:5]))


def main():
    include = sys.argv[1]
    clang, glslang = shutil.which("clang"), shutil.which("glslangValidator")
    failures, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "all.cl")
        with open(text, "w") as file:
            file.write(OPENCL)
        for name, options in OPENCL_TYPES.items() if clang else ():
            check(f"OpenCL C, {name}",
                  [clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target", "spir64",
                   "-fsyntax-only", "-Werror=implicit-function-declaration", "-I", include, *options.split(), text],
                  failures)
            checked += 1
        for name, glsl_type in GLSL_TYPES.items() if glslang else ():
            text = os.path.join(folder, "all.comp")
            with open(text, "w") as file:
                file.write(GLSL % (name, glsl_type))
            check(f"GLSL, {name}", [glslang, "--quiet", "-V", "--target-env", "vulkan1.2", f"-I{include}", "-o",
                                    os.path.join(folder, "all.spv"), text], failures)
            checked += 1
    for failure in failures:
        print(failure)
    if checked == 0:
        print("skipped: neither clang nor glslangValidator is here")
        return 77
    print(f"{checked} preludes compiled, {len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
