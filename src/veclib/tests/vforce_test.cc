// vForce against long double on every instruction set: the largest error in units of the last place is measured,
// printed and bounded, lengths 0 to 300 against guard pages, in place, special values.

#include "vecLib/vForce.h"

#include <functional>

#include "tests/support/testing.h"

namespace bnns::testing {
namespace {

// Units of the last place of T between x and the exact value.
template <class T>
double ulps(T x, long double exact) {
  if (std::isnan(x) && std::isnan(exact)) return 0;
  const T rounded = T(exact);
  if (x == rounded) return 0;
  const long double unit =
      std::max<long double>(std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity()) - std::fabs(rounded),
                            std::numeric_limits<T>::denorm_min());
  return double(std::fabs((static_cast<long double>(x) - exact) / unit));
}

template <class T>
using Function = void (*)(T*, const T*, const int*) noexcept;
using Exact = long double (*)(long double);

template <class T>
void check(const char* name, Function<T> f, Exact exact, double low, double high, double bound) {
  double worst = 0;
  for_each_isa([&] {
    Random random(1);
    std::vector<T> x(100003), y(x.size());
    for (T& v : x) v = T(random.uniform(low, high));
    const int n = int(x.size());
    f(y.data(), x.data(), &n);
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps<T>(y[i], exact(x[i]));
      worst = std::max(worst, error);
      ASSERT_LE(error, bound) << name << " of " << x[i];
    }
    for (int count = -1; count <= 300; ++count) {
      const size_t size = count < 0 ? 0 : size_t(count);
      Guarded<T> in(std::vector<T>(x.begin(), x.begin() + long(size))), out(size), front(size, Guarded<T>::Side::begin);
      f(out.data(), in.data(), &count), f(front.data(), in.data(), &count), f(in.data(), in.data(), &count);
      for (size_t i = 0; i < size; ++i) ASSERT_TRUE(out[i] == y[i] && front[i] == y[i] && in[i] == y[i]) << name;
    }
  });
  std::printf("  %-7s %s  %.3f ulp on [%g, %g]\n", name, sizeof(T) == 4 ? "f32" : "f64", worst, low, high);
}

#define CHECK(name, exact, low, high, bound32, bound64)                                            \
  check<float>(                                                                                    \
      #name, vv##name##f, [](long double x) -> long double { return exact; }, low, high, bound32); \
  check<double>(                                                                                   \
      #name, vv##name, [](long double x) -> long double { return exact; }, low, high, bound64)

TEST(VForce, Simple) {
  CHECK(sqrt, std::sqrt(x), 0, 1e6, 1, 1);
  CHECK(rec, 1 / x, 0.001, 1e6, 1, 1);
  CHECK(fabs, std::fabs(x), -1e6, 1e6, 0, 0);
  CHECK(floor, std::floor(x), -1e6, 1e6, 0, 0);
  CHECK(ceil, std::ceil(x), -1e6, 1e6, 0, 0);
  CHECK(nint, std::nearbyint(x), -1e6, 1e6, 0, 0);
}

TEST(VForce, Functions) {
  CHECK(rsqrt, 1 / std::sqrt(x), 0.001, 1e6, 2, 2);
  CHECK(exp, std::exp(x), -87, 88, 4, 4);
  CHECK(log, std::log(x), 1e-6, 1e6, 4, 4);
  CHECK(sin, std::sin(x), -1e4, 1e4, 4, 4);
  CHECK(cos, std::cos(x), -1e4, 1e4, 4, 4);
  CHECK(tanh, std::tanh(x), -12, 12, 4, 4);
}

template <class T, class F>
void check_power(F f) {
  double worst = 0;
  for_each_isa([&] {
    Random random(2);
    std::vector<T> x(50001), y(x.size()), z(x.size());
    for (T& v : x) v = T(random.uniform(0.01, 20));
    for (T& v : y) v = T(random.uniform(-8, 8));
    const int n = int(x.size());
    f(z.data(), y.data(), x.data(), &n);  // exponents, then bases
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps<T>(z[i], std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i])));
      worst = std::max(worst, error);
      ASSERT_LE(error, 4) << x[i] << " to the power of " << y[i];
    }
  });
  std::printf("  pow     %s  %.3f ulp\n", sizeof(T) == 4 ? "f32" : "f64", worst);
}

TEST(VForce, Power) {
  check_power<float>(vvpowf);
  check_power<double>(vvpow);
}

TEST(VForce, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_each_isa([] {
    const float x[] = {0, -0.0f, kInfinity, -kInfinity, std::nanf(""), -1};
    float y[6];
    const int n = 6;
    vvexpf(y, x, &n);
    EXPECT_TRUE(y[0] == 1 && y[2] == kInfinity && y[3] == 0 && std::isnan(y[4]));
    vvlogf(y, x, &n);
    EXPECT_TRUE(y[0] == -kInfinity && y[2] == kInfinity && std::isnan(y[4]) && std::isnan(y[5]));
    vvrecf(y, x, &n);
    EXPECT_TRUE(y[0] == kInfinity && y[1] == -kInfinity && y[2] == 0 && std::isnan(y[4]));
    vvsqrtf(y, x, &n);
    EXPECT_TRUE(y[0] == 0 && std::signbit(y[1]) && y[2] == kInfinity && std::isnan(y[5]));
    vvsinf(y, x, &n);
    EXPECT_TRUE(y[0] == 0 && std::isnan(y[2]) && std::isnan(y[4]));
  });
}

}  // namespace
}  // namespace bnns::testing
