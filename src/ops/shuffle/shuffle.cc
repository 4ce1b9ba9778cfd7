#include "src/ops/shuffle/shuffle.h"

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "shuffle";

Tensor read_operand(const BNNSNDArrayDescriptor* d, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_plain(t, kOp, field);
  if (t.layout != BNNSDataLayout4DFirstMajor) {
    fail_unsupported("%s: %s.layout is %s, expected BNNSDataLayout4DFirstMajor {N, C, H, W}", kOp, field,
                     enum_text(t.layout).text);
  }
  return t;
}

// The block size r, from the heights; every other extent must agree with it.
size_t block_size(const Tensor& deep, const char* deep_name, const Tensor& space, const char* space_name) {
  const size_t r = space.size[2] / deep.size[2];
  if (r == 0 || space.size[2] % deep.size[2] != 0) {
    fail_invalid("%s: %s.size[2] is %zu, expected a multiple of %s.size[2] = %zu", kOp, space_name, space.size[2],
                 deep_name, deep.size[2]);
  }
  if (space.size[3] % deep.size[3] != 0 || space.size[3] / deep.size[3] != r) {
    fail_invalid("%s: %s.size[3] is %zu, expected %zu times %s.size[3] = %zu, as the heights have it", kOp, space_name,
                 space.size[3], r, deep_name, deep.size[3]);
  }
  const size_t channels = deep.size[1] / r / r;  // r * r may not fit
  if (channels * r * r != deep.size[1] || channels != space.size[1]) {
    fail_invalid("%s: %s.size[1] is %zu, expected %zu * %zu times %s.size[1] = %zu", kOp, deep_name, deep.size[1], r, r,
                 space_name, space.size[1]);
  }
  if (deep.size[0] != space.size[0]) {
    fail_invalid("%s: %s.size[0] is %zu, expected %zu as %s", kOp, space_name, space.size[0], deep.size[0], deep_name);
  }
  return r;
}

}  // namespace

CopyProblem make_shuffle_problem(BNNSShuffleType type, const BNNSNDArrayDescriptor* input,
                                 const BNNSNDArrayDescriptor* output) {
  if (static_cast<unsigned>(type) > BNNSShuffleTypeSpaceToDepthNCHW) {
    fail_invalid("%s: type is %s", kOp, enum_text(type).text);
  }
  CopyProblem p;
  p.from = read_operand(input, "input");
  p.to = read_operand(output, "output");
  check_distinct(p.to, kOp, "output");
  if (p.from.type != p.to.type || p.from.scale != p.to.scale || p.from.bias != p.to.bias) {
    fail_unsupported("%s: output is %s, expected the type, scale and bias of input, which is %s", kOp,
                     type_name(p.to.type), type_name(p.from.type));
  }
  check_disjoint(p.to.data, p.to.span_bytes(), "output", p.from.data, p.from.span_bytes(), "input", kOp);
  const bool to_space = type == BNNSShuffleTypePixelShuffleNCHW || type == BNNSShuffleTypeDepthToSpaceNCHW;
  const bool channel_outermost = type == BNNSShuffleTypePixelShuffleNCHW || type == BNNSShuffleTypePixelUnshuffleNCHW;
  const Tensor &deep = to_space ? p.from : p.to, &space = to_space ? p.to : p.from;
  const size_t r = block_size(deep, to_space ? "input" : "output", space, to_space ? "output" : "input");
  const size_t N = space.size[0], C = space.size[1], H = deep.size[2], W = deep.size[3];
  const size_t c = channel_outermost ? r * r : 1, ij = channel_outermost ? 1 : C;  // channel = c c' + ij (i r + j)
  const struct {
    size_t extent, deep, space;
  } axes[] = {{N, deep.stride[0], space.stride[0]},     {C, c * deep.stride[1], space.stride[1]},
              {H, deep.stride[2], r * space.stride[2]}, {r, ij * r * deep.stride[1], space.stride[2]},
              {W, deep.stride[3], r * space.stride[3]}, {r, ij * deep.stride[1], space.stride[3]}};
  CopyAxis copy[6];
  for (size_t k = 0; k < 6; ++k) {
    const auto d = static_cast<ptrdiff_t>(axes[k].deep), s = static_cast<ptrdiff_t>(axes[k].space);
    copy[k] = CopyAxis{axes[k].extent, to_space ? d : s, to_space ? s : d};
  }
  set_copy_axes(&p, copy, 6);
  return p;
}

}  // namespace bnns
