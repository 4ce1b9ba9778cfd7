#include "bench/problem_line.h"

#include <algorithm>
#include <map>

#include "bench/problem_words.h"

namespace bnns::bench {
namespace {

// bias and ReLU of a layer with weights; the gradient through ReLU has no row.
Texts with_tail(Made& made, Words& w, const Line& line, bool bias) {
  const bool relu = w.take("relu");
  w.end();
  if (relu && !line.forward()) refuse("no row of bnns bench has the gradient of a layer with relu; leave the word out");
  made.only_forward("bias", bias).only_forward("relu", relu);
  return made.lines({"forward"}, relu ? Texts{} : Texts{"dx", "dw"});
}

Texts convolution(const Line& line, Words& w) {
  std::string type = w.type();
  if (w.take("w:i8")) type = "i8";
  const Sizes x = sizes_of(w.next());
  w.expect(">");
  const Sizes y = sizes_of(w.next()), k = w.numbers("k");
  const Sizes s = w.numbers("s", {1}), d = w.numbers("d", {1}), p = w.numbers("p", {0});
  const std::size_t groups = w.numbers("g", {1})[0];
  if (x.size() != 3 || y.size() != 3 || k.size() != 2) refuse("a convolution is CxHxW > CxHxW kHxW");
  for (std::size_t a = 0; a < 2; ++a) {
    const auto of = [a](const Sizes& pair) { return pair[pair.size() > 1 ? a : 0]; };
    const std::size_t reach = (k[a] - 1) * of(d) + 1, padded = x[a + 1] + 2 * of(p);
    const std::string side = a == 0 ? "high" : "wide";
    if (of(s) == 0) refuse("a stride is 0, expected 1 or more");
    if (padded < reach) {
      refuse("the kernel reaches over " + std::to_string(reach) + " pixels, and the input is " +
             std::to_string(padded) + " " + side + " with its padding");
    }
    if (const std::size_t fits = (padded - reach) / of(s) + 1; fits != y[a + 1]) {
      refuse("the result is " + std::to_string(y[a + 1]) + " " + side + ", expected " + std::to_string(fits) +
             ": rows of bnns bench have the same padding on both sides, and no pixel to spare");
    }
  }
  Made made(line, groups > 1 ? "depthwise" : "conv", "convolution", type);
  made.set("n", line.batch).set("i", x[0]).set("h", x[1]).set("w", x[2]).set("o", y[0]).set("kh", k[0]).set("kw", k[1]);
  made.set("sy", s.front()).set("sx", s.back()).set("py", p.front()).set("px", p.back());
  made.set("dy", d.front()).set("dx", d.back()).set("g", groups);
  return with_tail(made, w, line, !w.take("nobias"));
}

Texts fully_connected(const Line& line, Words& w) {
  std::string type = w.type();
  if (w.take("w:i8")) type = "i8";
  Made made(line, "fully_connected", "fully_connected", type);
  made.set("n", line.batch).set("in", w.number("i")).set("out", w.number("o"));
  return with_tail(made, w, line, !w.take("nobias"));
}

Texts pooling(const Line& line, Words& w, const std::string& op) {
  Made made(line, "pool", op, w.type());
  const std::size_t c = w.number("c");
  const Sizes h = w.numbers("h"), width = w.numbers("w"), k = w.numbers("k"), s = w.numbers("s"),
              d = w.numbers("d", {1});
  std::string pad = w.next();
  std::replace(pad.begin(), pad.end(), ',', 'x');
  const Sizes p = sizes_of(pad.substr(1));
  w.end();
  if (h.size() != 2 || width.size() != 2 || k.size() != 2 || p.size() != 4)
    refuse("a pooling is hINxOUT wINxOUT kWxH pL,R,U,D");
  made.set("n", line.batch).set("c", c).set("h", h[0]).set("w", width[0]).set("kh", k[1]).set("kw", k[0]);
  made.set("sy", s.back()).set("sx", s.front()).set("py", p[2]).set("px", p[0]).set("ay", p[3]).set("ax", p[1]);
  made.set("dy", d.back()).set("dx", d.front());
  return made.lines({"forward"}, {"backward"});
}

Texts normalization(const Line& line, Words& w, const std::string& op) {
  Made made(line, "normalization", op, w.type());
  made.set("n", line.batch).set("c", w.number("c")).set("h", w.number("h")).set("w", w.number("w"));
  if (op == "group") made.set("groups", w.number("groups"));
  if (op == "layer" && w.number("axis") != 0) refuse("rows of bnns bench have layer normalization over axis 0");
  if (w.take("relu")) made.set("relu", 1);
  w.end();
  return made.lines({"forward"}, {"backward"});
}

// A tensor with a batch is one matrix: softmax runs along its rows, all others do not care.
Texts activation(const Line& line, Words& w) {
  static const std::map<std::string, std::string> renamed = {{"leaky_relu", "leaky"},
                                                             {"gelu_approximation", "gelu_tanh"}};
  const std::string name = w.next(), type = w.type();
  const Sizes x = sizes_of(w.next());
  w.expect("->");
  const std::string out = w.type();
  if (type != out || sizes_of(w.next()) != x) refuse("rows of bnns bench have activations with one type and shape");
  std::size_t count = line.batch, columns = x[0];
  for (const std::size_t size : x) count *= size;
  if (name.find("softmax") != name.npos) {
    const bool second = w.take("axes") && w.next() == "2";
    if (x.size() > 2 || (x.size() == 2) != second) refuse("rows of bnns bench have softmax along rows of a matrix");
    columns = x.back();
  }
  w.end();
  if (columns == 0) refuse("the activation has no elements");
  const auto other = renamed.find(name);
  Made made(line, "activation", other == renamed.end() ? name : other->second, type);
  return made.set("rows", count / columns).set("columns", columns).lines({"forward"}, {"backward"});
}

Texts loss(const Line& line, Words& w) {
  static const std::map<std::string, std::string> names = {
      {"softmax_ce", "softmax"}, {"sigmoid_ce", "sigmoid"}, {"mse", "square"}, {"huber", "huber"}, {"mae", "absolute"}};
  const std::string name = w.next(), type = w.type();
  const auto found = names.find(name);
  std::size_t count = 1;
  for (const std::size_t size : sizes_of(w.next())) count *= size;
  if (found == names.end() || !w.take("mean"))
    refuse("rows of bnns bench have no loss " + name + " with this reduction");
  w.end();
  return Made(line, "loss", found->second, type).set("n", line.batch).set("c", count).lines({"forward"}, {});
}

// "add(sample f32 512x3072, sample f32 1x3072) -> f32 512x3072"
Texts arithmetic(const Line& line, Words& w) {
  const std::string first = w.next(), name = first.substr(0, first.find('('));
  if (first.find("(sample") == first.npos) refuse("rows of bnns bench have operands that are samples");
  const std::string type = w.type();
  std::string operand = w.next();
  std::vector<Sizes> inputs;
  while (true) {
    const char last = operand.back();
    operand.pop_back();
    inputs.push_back(sizes_of(operand));
    if (last == ')') break;
    w.expect("sample");
    if (w.type() != type) refuse("rows of bnns bench have operands of one type");
    operand = w.next();
  }
  w.expect("->");
  if (w.type() != type || sizes_of(w.next()) != inputs[0])
    refuse("rows of bnns bench have results like the first operand");
  w.end();
  std::size_t broadcast = 0;
  const std::size_t rank = inputs[0].size(), before = line.batch > 1 ? 1 : 0;
  for (std::size_t k = 0; k < rank; ++k) {
    if (inputs.size() < 2 || inputs[1].size() != rank || inputs[1][k] == inputs[0][k]) continue;
    broadcast |= std::size_t{1} << (rank - 1 - k + before);
  }
  Made made(line, "arithmetic", name, type);
  made.axes(inputs[0]).set("last", 1);
  if (broadcast != 0) made.set("broadcast", broadcast);
  return made.lines({"forward"}, {"backward"});
}

// "nt f32 12x128x64 f32 12x128x64 to f32 12x128x128"
Texts matmul(const Line& line, Words& w) {
  const std::string how = w.next(), type = w.type();
  Sizes a = sizes_of(w.next());
  if (how.size() != 2 || w.type() != type) refuse("rows of bnns bench have products of one type");
  Sizes b = sizes_of(w.next());
  w.expect("to");
  if (w.type() != type) refuse("rows of bnns bench have products of one type");
  Sizes c = sizes_of(w.next());
  w.end();
  for (Sizes* one : {&a, &b, &c}) one->insert(one->begin(), one->size() < 3 ? 3 - one->size() : 0, 1);
  if (a.size() > 3 || b.size() > 3 || (b[0] != a[0] && b[0] != 1)) refuse("rows of bnns bench have one batch axis");
  Made made(line, "matmul", "matmul", type);
  made.set("batch", c[0]).set("m", c[1]).set("n", c[2]).set("k", how[0] == 't' ? a[1] : a[2]);
  if (how[0] == 't') made.set("ta", 1);
  if (how[1] == 't') made.set("tb", 1);
  if (b[0] != a[0]) made.set("share", 1);
  return made.lines({"forward"}, {});
}

// The line numbers axes from the fastest, a row from the slowest.
Texts permute(const Line& line, Words& w) {
  const std::string type = w.type();
  const Sizes x = sizes_of(w.next());
  w.expect("axes");
  std::string text = w.next();
  w.end();
  std::replace(text.begin(), text.end(), ',', 'x');
  Sizes order = sizes_of(text);
  if (order.size() != x.size()) refuse("permute has as many axes as sizes");
  if (line.batch > 1) order.push_back(x.size());
  std::size_t digits = 0;
  for (std::size_t k = order.size(); k-- > 0;) digits = digits * 10 + (order.size() - 1 - order[k]);
  return Made(line, "permute", "permute", type)
      .axes(x)
      .set("last", 1)
      .set("axes", digits)
      .lines({"forward"}, {"backward"});
}

Texts reduction(const Line& line, Words& w) {
  static const std::map<std::string, std::string> names = {{"Sum", "sum"},
                                                           {"Mean", "mean"},
                                                           {"Max", "max"},
                                                           {"Min", "min"},
                                                           {"L1Norm", "l1"},
                                                           {"L2Norm", "l2"},
                                                           {"Product", "product"},
                                                           {"ArgMax", "argmax"},
                                                           {"SumSquare", "sum_square"},
                                                           {"LogSumExp", "log_sum_exp"}};
  const std::string type = w.type();
  const Sizes x = sizes_of(w.next());
  w.expect("to");
  w.next();
  const Sizes y = sizes_of(w.next());
  const std::string name = w.next();
  w.end();
  if (names.count(name) == 0 || y.size() != x.size())
    refuse("rows of bnns bench have no reduction " + name + " like this");
  std::size_t mask = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (y[k] != x[k]) mask |= std::size_t{1} << (x.size() - 1 - k + (line.batch > 1 ? 1 : 0));
  }
  return Made(line, "reduction", names.at(name), type)
      .axes(x)
      .set("last", 1)
      .set("mask", mask)
      .lines({"forward"}, {"backward"});
}

Texts attention(const Line& line, Words& w) {
  Made made(line, "attention", "self", w.type());
  const std::size_t l = w.number("l"), s = w.number("s");
  w.number("model");
  const std::size_t h = w.number("h"), k = w.number("k"), v = w.number("v");
  w.end();
  if (s != l || k != v) refuse("rows of bnns bench have self-attention");
  return made.set("n", line.batch).set("l", l).set("h", h).set("d", k).lines({"forward"}, {"backward"});
}

Texts lstm(const Line& line, Words& w) {
  Made made(line, "lstm", "lstm", w.type());
  const std::size_t in = w.number("i"), h = w.number("h"), n = w.number("b"), layers = w.number("layers");
  made.set("t", w.number("steps")).set("n", n).set("in", in).set("h", h);
  w.end();
  if (layers != 1) refuse("rows of bnns bench have LSTMs of one layer");
  return made.lines({"forward"}, {"backward"});
}

using Read = Texts (*)(const Line&, Words&);
const std::map<std::string, Read>& readers() {
  static const std::map<std::string, Read> all = {
      {"convolution", convolution},
      {"fully_connected", fully_connected},
      {"max_pool", [](const Line& l, Words& w) { return pooling(l, w, "max"); }},
      {"average_pool", [](const Line& l, Words& w) { return pooling(l, w, "average_padding"); }},
      {"average_pool_exclude_padding", [](const Line& l, Words& w) { return pooling(l, w, "average"); }},
      {"l2_pool", [](const Line& l, Words& w) { return pooling(l, w, "l2"); }},
      {"batch_norm", [](const Line& l, Words& w) { return normalization(l, w, "batch"); }},
      {"instance_norm", [](const Line& l, Words& w) { return normalization(l, w, "instance"); }},
      {"layer_norm", [](const Line& l, Words& w) { return normalization(l, w, "layer"); }},
      {"group_norm", [](const Line& l, Words& w) { return normalization(l, w, "group"); }},
      {"activation", activation},
      {"loss", loss},
      {"arithmetic", arithmetic},
      {"matmul", matmul},
      {"permute", permute},
      {"reduction", reduction},
      {"attention", attention},
      {"lstm", lstm},
  };
  return all;
}

}  // namespace

std::vector<std::string> descriptions_of(const std::string& text) {
  if (text.find('=') != text.npos) return {text};
  const Line line(text);
  Words words(line.problem);
  if (line.problem.find_first_not_of(' ') == std::string::npos) refuse("the line is empty");
  const std::string operator_name = words.next();
  const auto found = readers().find(operator_name);
  if (found == readers().end()) {
    std::string names;
    for (const auto& [name, read] : readers()) names += (names.empty() ? "" : ", ") + name;
    refuse("lines of " + operator_name + " are not read; those of " + names + " are");
  }
  return found->second(line, words);
}

}  // namespace bnns::bench
