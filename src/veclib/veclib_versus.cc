// vDSP and vForce beside the loops that a program would write: 4096 elements, which stay in L1, and 16 million, which
// come from memory (there the share of the copy limit is what counts).

#include <vecLib/vDSP.h>
#include <vecLib/vForce.h>

#include "bench/row.h"
#include "bench/vector_loops.h"

namespace bnns::bench {
namespace {

struct Arrays {
  const float *a, *b, *c;
  float* y;
  size_t n;
};
using Run = std::function<void(const Arrays&)>;

struct Function {
  const char* name;
  double arrays;  // that move, of n floats
  Run ours, loop;
};

constexpr size_t kRows = 1024;  // of a matrix that is transposed

const Function kFunctions[] = {
    {"vDSP_vadd", 3, [](const Arrays& v) { vDSP_vadd(v.a, 1, v.b, 1, v.y, 1, v.n); },
     [](const Arrays& v) { loops::add(v.a, v.b, v.y, v.n); }},
    {"vDSP_vma", 4, [](const Arrays& v) { vDSP_vma(v.a, 1, v.b, 1, v.c, 1, v.y, 1, v.n); },
     [](const Arrays& v) { loops::multiply_add(v.a, v.b, v.c, v.y, v.n); }},
    {"vDSP_vsmul", 2, [](const Arrays& v) { vDSP_vsmul(v.a, 1, v.b, v.y, 1, v.n); },
     [](const Arrays& v) { loops::scale(v.a, v.b[0], v.y, v.n); }},
    {"vDSP_vclip", 2,
     [](const Arrays& v) {
       const float low = -0.5f, high = 0.5f;
       vDSP_vclip(v.a, 1, &low, &high, v.y, 1, v.n);
     },
     [](const Arrays& v) { loops::clip(v.a, -0.5f, 0.5f, v.y, v.n); }},
    {"vDSP_vfill", 1, [](const Arrays& v) { vDSP_vfill(v.a, v.y, 1, v.n); },
     [](const Arrays& v) { loops::fill(v.a[0], v.y, v.n); }},
    {"vDSP_sve", 1, [](const Arrays& v) { vDSP_sve(v.a, 1, v.y, v.n); },
     [](const Arrays& v) { v.y[0] = loops::sum(v.a, v.n); }},
    {"vDSP_dotpr", 2, [](const Arrays& v) { vDSP_dotpr(v.a, 1, v.b, 1, v.y, v.n); },
     [](const Arrays& v) { v.y[0] = loops::dot(v.a, v.b, v.n); }},
    {"vDSP_maxvi", 1,
     [](const Arrays& v) {
       vDSP_Length index;
       vDSP_maxvi(v.a, 1, v.y, &index, v.n);
     },
     [](const Arrays& v) {
       size_t index;
       v.y[0] = loops::largest(v.a, &index, v.n);
     }},
    {"vDSP_vfix8", 1.25, [](const Arrays& v) { vDSP_vfix8(v.a, 1, reinterpret_cast<char*>(v.y), 1, v.n); },
     [](const Arrays& v) { loops::to_int8(v.a, reinterpret_cast<int8_t*>(v.y), v.n); }},
    {"vDSP_mtrans", 2, [](const Arrays& v) { vDSP_mtrans(v.a, 1, v.y, 1, v.n / kRows, kRows); },
     [](const Arrays& v) { loops::transpose(v.a, v.y, v.n / kRows, kRows); }},
    {"vvexpf", 2,
     [](const Arrays& v) {
       const int n = static_cast<int>(v.n);
       vvexpf(v.y, v.a, &n);
     },
     [](const Arrays& v) { loops::exponential(v.a, v.y, v.n); }},
    {"vvtanhf", 2,
     [](const Arrays& v) {
       const int n = static_cast<int>(v.n);
       vvtanhf(v.y, v.a, &n);
     },
     [](const Arrays& v) { loops::tangent(v.a, v.y, v.n); }},
};

}  // namespace

void add_veclib_rows() {
  for (const Function& f : kFunctions) {
    for (const size_t n : {size_t{4096}, size_t{1} << 24}) {
      Row r;
      r.family = "veclib", r.op = f.name, r.direction = "call", r.shape = std::to_string(n), r.quick = n == 4096;
      if (n > 4096) r.bytes = 4.0 * double(n) * f.arrays;
      r.fill = [=](Data& d) {
        uint32_t seed = 1;
        for (const char* name : {"a", "b", "c"}) d.add(name, {n}).fill(1, seed++);
        d.add("y", {n});
      };
      r.open = [&f, n](Case& c, size_t) {
        const auto call = [n](const Run& run) {
          return [run, n](Data& d) {
            run({d["a"].as<float>(), d["b"].as<float>(), d["c"].as<float>(), d["y"].as<float>(), n});
          };
        };
        c.contenders.push_back({"ours", call(f.ours), ""});
        c.contenders.push_back({"plain loop", call(f.loop), ""});
      };
      rows().push_back(std::move(r));
    }
  }
}

}  // namespace bnns::bench
