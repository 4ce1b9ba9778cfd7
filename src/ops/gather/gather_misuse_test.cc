// Gather and scatter: bad indices and shapes have their codes and reasons, and nothing is written.

#include <functional>

#include "src/ops/gather/gather.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

enum class Function { gather, scatter, gather_nd, scatter_nd };
constexpr Function kFunctions[] = {Function::gather, Function::scatter, Function::gather_nd, Function::scatter_nd};

// data {5, 3} and values {4, 3} of f32, four indices into axis 0.
struct Call {
  Function function;
  std::vector<float> data = std::vector<float>(24, 3), values = std::vector<float>(24, 9);
  std::vector<int32_t> index = {0, 4, 2, 1, 0, 0, 0, 0};
  BNNSNDArrayDescriptor d = descriptor(BNNSDataLayout2DFirstMajor, {5, 3}, data.data());
  BNNSNDArrayDescriptor v = descriptor(BNNSDataLayout2DFirstMajor, {4, 3}, values.data());
  BNNSNDArrayDescriptor i = vector_descriptor(4, index.data(), BNNSDataTypeInt32);
  BNNSNDArrayDescriptor *dp = &d, *vp = &v, *ip = &i;
  size_t axis = 0;
  BNNSReduceFunction op = BNNSReduceFunctionNone;
  BNNSFilterParameters options = {};
  explicit Call(Function f) : function(f) {
    if (nd()) i = descriptor(BNNSDataLayout2DFirstMajor, {4, 1}, index.data(), BNNSDataTypeInt32);
  }
  bool nd() const { return function == Function::gather_nd || function == Function::scatter_nd; }
  bool gathers() const { return function == Function::gather || function == Function::gather_nd; }
  int run() {
    switch (function) {
      case Function::gather:
        return BNNSGather(axis, dp, ip, vp, &options);
      case Function::scatter:
        return BNNSScatter(axis, op, vp, ip, dp, &options);
      case Function::gather_nd:
        return BNNSGatherND(dp, ip, vp, &options);
      default:
        return BNNSScatterND(op, vp, ip, dp, &options);
    }
  }
  void expect_refused(int code, std::initializer_list<const char*> words) {
    const auto data_before = data, values_before = values;
    EXPECT_EQ(run(), code);
    EXPECT_TRUE(refused_because(words));
    EXPECT_EQ(data, data_before);
    EXPECT_EQ(values, values_before);
  }
};

TEST(GatherMisuse, BC10_BC32_IndexOutOfRange) {
  for (Function function : kFunctions) {
    for (int32_t bad : {-1, 5, INT32_MAX, INT32_MIN}) {
      for (size_t where : {0, 3}) {
        Call call(function);
        call.index[where] = bad;
        call.expect_refused(-1005, {("an index is " + std::to_string(bad)).c_str(), "expected 0 to 4",
                                    ("position " + std::to_string(where)).c_str()});
      }
    }
    Call good(function);
    EXPECT_EQ(good.run(), 0) << BNNSExtLastError();
  }
  // The last of many indices: whole blocks before it must not have been written.
  std::vector<float> x(10, 1), y(5000, 7);
  std::vector<uint64_t> index(5000, 3);
  index.back() = UINT64_MAX;
  auto in = vector_descriptor(10, x.data()), out = vector_descriptor(5000, y.data());
  auto i = vector_descriptor(5000, index.data(), BNNSDataTypeUInt64);
  EXPECT_EQ(BNNSGather(0, &in, &i, &out, nullptr), -1005);
  EXPECT_EQ(y, std::vector<float>(5000, 7));
  // The second component of a vector.
  int32_t pair[2] = {4, 3};
  Call call(Function::gather_nd);
  call.i = vector_descriptor(2, pair, BNNSDataTypeInt32);
  call.v = vector_descriptor(1, call.values.data());
  call.expect_refused(-1005, {"an index is 3 (position 1", "expected 0 to 2"});
}

TEST(GatherMisuse, ShapesHaveTheirCode) {
  for (Function function : kFunctions) {
    for (const auto& spoil : {std::function<void(Call&)>([](Call& c) { c.v.size[0] = 3; }),
                              {[](Call& c) { c.v.size[1] = 2; }},
                              {[](Call& c) { c.v = vector_descriptor(12, c.values.data()); }}}) {
      Call call(function);
      spoil(call);
      call.expect_refused(-1003, {});
    }
  }
  Call call(Function::gather_nd);
  call.i = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, call.index.data(), BNNSDataTypeInt32);
  call.expect_refused(-1003, {"the last index of indices has 3 values, expected at most 2"});
  Call matrix(Function::gather);
  matrix.i = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, matrix.index.data(), BNNSDataTypeInt32);
  matrix.expect_refused(-1003, {"indices is i32 2x2, expected a vector or the sizes of output"});
  Call named(Function::scatter);
  named.v.size[1] = 2;
  named.expect_refused(-1003, {"scatter: input.size[1] is 2, expected 3 as in output"});
}

TEST(GatherMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  const std::pair<std::function<void(Call&)>, const char*> refusals[] = {
      {[](Call& c) { c.dp = nullptr; }, "is NULL"},
      {[](Call& c) { c.vp = nullptr; }, "is NULL"},
      {[](Call& c) { c.ip = nullptr; }, "indices is NULL"},
      {[](Call& c) { c.d.data = nullptr; }, ".data is NULL"},
      {[](Call& c) { c.i.data = nullptr; }, "indices.data is NULL"},
      {[](Call& c) { c.i.data_type = BNNSDataTypeFloat32; }, "indices has type f32, expected an integer"},
      {[](Call& c) { c.i.data_type = BNNSDataTypeInt4; }, "indices has type i4"},
      {[](Call& c) { c.v.data_type = BNNSDataTypeInt32; }, "expected the type, scale and bias of input"},
      {[](Call& c) { c.v.data = c.data.data(); }, "output and input overlap"},
      {[](Call& c) { c.i.data = c.gathers() ? c.v.data : c.d.data; }, "output and indices overlap"},
      {[](Call& c) { c.d.size[0] = 0; }, "size[0] is 0"},
      {[](Call& c) { c.d.size[0] = SIZE_MAX; }, "does not fit"},
      {[](Call& c) { c.d.layout = BNNSDataLayout(3); }, ".layout is 0x3"},
      {[](Call& c) { c.options.flags = 2; }, "flags is 0x2"},
  };
  for (Function function : kFunctions) {
    for (const auto& [spoil, reason] : refusals) {
      Call call(function);
      spoil(call);
      call.expect_refused(-1, {reason});
    }
    if (function == Function::scatter || function == Function::scatter_nd) {
      Call call(function);
      call.op = BNNSReduceFunctionMean;
      call.expect_refused(
          -1,
          {"op is BNNSReduceFunctionMean (4), expected BNNSReduceFunctionNone (overwrite) or BNNSReduceFunctionSum"});
      call.op = BNNSReduceFunctionSum;
      call.d.data_type = call.v.data_type = BNNSDataTypeBoolean;
      call.expect_refused(-1, {"output has type bool, which cannot be summed"});
    }
  }
  Call call(Function::gather);
  call.axis = 2;
  call.expect_refused(-1, {"axis is 2, expected less than 2, the rank of input"});
  Call scatter(Function::scatter);
  scatter.axis = SIZE_MAX;
  scatter.expect_refused(-1, {"axis", "the rank of output"});
}

}  // namespace
}  // namespace bnns::testing
