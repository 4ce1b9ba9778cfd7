// Opens and runs every row of scale_shift_versus.cc once and compares the contenders, as `make bench` does before it
// takes the time. An operator in src/ops does not need this: its rows are in the table.

#include <cmath>

#include "bench/row.h"

namespace bnns::bench {

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}
void add_scale_shift_rows();

}  // namespace bnns::bench

int main() {
  using namespace bnns::bench;
  add_scale_shift_rows();
  bool agree = true;
  for (const Row& row : rows()) {
    Case one;
    row.fill(one.sets.emplace_back());
    row.open(one, 2);
    Data& data = one.sets[0];
    for (const Contender& contender : one.contenders) contender.call(data);
    const Array &ours = data[one.contenders[0].result], &other = data[one.contenders[1].result];
    double worst = 0;
    for (size_t i = 0; i < ours.count(); ++i)
      worst = std::fmax(worst, std::fabs(double(ours.get(i)) - double(other.get(i))));
    std::printf("%s %s: largest difference %.1e\n", row.op.c_str(), row.shape.c_str(), worst);
    agree = agree && worst < 1e-6;  // |y| < 2: two roundings
  }
  return agree && !rows().empty() ? 0 : 1;
}
