// vDSP against plain loops in double: every function, f32 and f64, every instruction set, strides -3 to 3, lengths 0 to
// 300 and around the blocks of sums, all buffers against guard pages, and what lies between strided elements unchanged.

#include "vecLib/vDSP.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "src/veclib/kernels.h"
#include "tests/support/testing.h"

namespace bnns::testing {
namespace {

using Length = vDSP_Length;
using Stride = vDSP_Stride;

// A vector of n elements with a stride, flush against a page that faults on the side where reading on would go.
template <class T>
class Strided {
 public:
  Strided(size_t n, Stride stride, Random& random, double low = -4, double high = 4)
      : n_(n), size_(n ? (n - 1) * size_t(std::abs(stride)) + 1 : 0), stride_(stride) {
    Guarded<T>& buffer = next_buffer();
    memory_ = buffer.data() + buffer.size() - size_;
    for (size_t i = 0; i < size_; ++i) memory_[i] = T(random.uniform(low, high));
    before_.assign(memory_, memory_ + size_);
  }
  T* data() { return memory_ + (stride_ < 0 && n_ ? Stride(n_ - 1) * -stride_ : 0); }
  T& operator[](size_t i) { return data()[Stride(i) * stride_]; }
  Stride stride() const { return stride_; }
  // Elements between those with the stride are as they were.
  bool gaps_unchanged() {
    for (size_t i = 0; i < n_; ++i) before_[size_t(&(*this)[i] - memory_)] = (*this)[i];
    return std::equal(before_.begin(), before_.end(), memory_);
  }

 private:
  // Mapping pages takes longer than the functions under test: the buffers are used in turn, more than a case has.
  static Guarded<T>& next_buffer() {
    static std::vector<std::unique_ptr<Guarded<T>>> buffers;
    static size_t turn = 0;
    if (buffers.size() < 8) buffers.push_back(std::make_unique<Guarded<T>>(16384));
    return *buffers[turn++ % 8];
  }
  size_t n_, size_;
  Stride stride_;
  T* memory_;
  std::vector<T> before_;
};

constexpr double kTiny = 1e-300;
template <class T>
double ulp(double x) {
  return std::max(std::fabs(x), kTiny) * double(std::numeric_limits<T>::epsilon());
}

const std::vector<size_t>& lengths() {
  static const std::vector<size_t> all = [] {
    std::vector<size_t> v;
    for (size_t n = 0; n <= 300; ++n) v.push_back(n);
    for (const size_t n : {511, 512, 513, 1025, 1600}) v.push_back(n);
    return v;
  }();
  return all;
}

// Lengths times strides: each of them for one operand at a time and for all.
void for_each_case(const std::function<void(size_t n, Stride a, Stride b, Stride c)>& body) {
  for (const size_t n : lengths()) {
    for (Stride s = -3; s <= 3; ++s) {
      const Stride out = s == 0 ? 1 : s;  // an output with stride 0 would be written n times
      body(n, s, 1, 1), body(n, 1, s, out), body(n, s, -s, out);
    }
  }
}

template <class T>
using Unary = void (*)(const T*, Stride, T*, Stride, Length) noexcept;
template <class T>
using UnaryNumber = void (*)(const T*, Stride, const T*, T*, Stride, Length) noexcept;
template <class T>
using Binary = void (*)(const T*, Stride, const T*, Stride, T*, Stride, Length) noexcept;
using Formula = double (*)(double a, double b, double s);

template <class T>
void expect_result(Strided<T>& c, size_t n, const char* name, const std::function<double(size_t)>& want) {
  for (size_t i = 0; i < n; ++i) {
    const double w = want(i);
    ASSERT_LE(std::fabs(double(c[i]) - w), ulp<T>(w)) << name << ", element " << i << " of " << n;
  }
  ASSERT_TRUE(c.gaps_unchanged()) << name << ", n " << n << ", stride " << c.stride();
}

template <class T>
void check_unary(const char* name, Unary<T> f, Formula formula) {
  Random random(1);
  for_each_case([&](size_t n, Stride sa, Stride, Stride sc) {
    Strided<T> a(n, sa, random), c(n, sc, random);
    f(a.data(), sa, c.data(), sc, n);
    expect_result<T>(c, n, name, [&](size_t i) { return double(T(formula(double(a[i]), 0, 0))); });
    if (sa != 0) {  // in place
      f(a.data(), sa, a.data(), sa, n);
      for (size_t i = 0; i < n && sa == sc; ++i) ASSERT_EQ(a[i], c[i]) << name << " in place, element " << i;
    }
  });
}
template <class T>
void check_number(const char* name, UnaryNumber<T> f, Formula formula) {
  Random random(2);
  for_each_case([&](size_t n, Stride sa, Stride, Stride sc) {
    Strided<T> a(n, sa, random), c(n, sc, random);
    const T s = T(random.uniform(0.5, 2));
    f(a.data(), sa, &s, c.data(), sc, n);
    expect_result<T>(c, n, name, [&](size_t i) { return double(T(formula(double(a[i]), 0, double(s)))); });
  });
}
template <class T>
void check_binary(const char* name, Binary<T> f, Formula formula) {
  Random random(3);
  for_each_case([&](size_t n, Stride sa, Stride sb, Stride sc) {
    Strided<T> a(n, sa, random), b(n, sb, random, 0.5, 4), c(n, sc, random);
    f(a.data(), sa, b.data(), sb, c.data(), sc, n);
    expect_result<T>(c, n, name, [&](size_t i) { return double(T(formula(double(a[i]), double(b[i]), 0))); });
  });
}

// The function of T: f, or fD.
template <class T, class F, class D>
constexpr auto pick(F f, D d) {
  if constexpr (std::is_same_v<T, float>) {
    return f;
  } else {
    return d;
  }
}
#define BOTH(f) pick<T>(&vDSP_##f, &vDSP_##f##D)
#define UNARY(f, formula) check_unary<T>(#f, BOTH(f), formula)
#define NUMBER(f, formula) check_number<T>(#f, BOTH(f), formula)
#define BINARY(f, formula) check_binary<T>(#f, BOTH(f), formula)

template <class T>
class Vdsp : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Vdsp, Types);

TYPED_TEST(Vdsp, ElementWise) {
  using T = TypeParam;
  for_each_isa([] {
    BINARY(vadd, [](double a, double b, double) { return a + b; });
    BINARY(vsub, [](double b, double a, double) { return a - b; });  // the first argument is taken away
    BINARY(vmul, [](double a, double b, double) { return a * b; });
    UNARY(vsq, [](double a, double, double) { return a * a; });
    UNARY(vabs, [](double a, double, double) { return std::fabs(a); });
    UNARY(vneg, [](double a, double, double) { return -a; });
    NUMBER(vsadd, [](double a, double, double s) { return a + s; });
    NUMBER(vsmul, [](double a, double, double s) { return a * s; });
    NUMBER(vsdiv, [](double a, double, double s) { return a / s; });
    NUMBER(vthr, [](double a, double, double s) { return a >= s ? a : s; });
    NUMBER(vthres, [](double a, double, double s) { return a >= s ? a : 0; });
  });
}

TYPED_TEST(Vdsp, DivideTakesTheDivisorFirst) {
  using T = TypeParam;
  for_each_isa([] {
    Random random(4);
    const auto f = BOTH(vdiv);
    for_each_case([&](size_t n, Stride sb, Stride sa, Stride sc) {
      Strided<T> b(n, sb, random, 0.5, 4), a(n, sa, random), c(n, sc, random);
      f(b.data(), sb, a.data(), sa, c.data(), sc, n);
      expect_result<T>(c, n, "vdiv", [&](size_t i) { return double(T(double(a[i]) / double(b[i]))); });
    });
  });
}

TYPED_TEST(Vdsp, ThreeOperands) {
  using T = TypeParam;
  for_each_isa([] {
    Random random(5);
    for_each_case([&](size_t n, Stride sa, Stride sb, Stride sd) {
      Strided<T> a(n, sa, random), b(n, sb, random), c(n, sa, random), d(n, sd, random);
      const T s = T(random.uniform(-2, 2)), t = T(random.uniform(-2, 2)), low = T(-1), high = T(1.5);
      const auto bound = [&](double w, double x, double y) {
        return ulp<T>(std::max({std::fabs(w), std::fabs(x), std::fabs(y)}));
      };
      BOTH(vma)(a.data(), sa, b.data(), sb, c.data(), sa, d.data(), sd, n);
      for (size_t i = 0; i < n; ++i) {
        const double p = double(a[i]) * double(b[i]), w = p + double(c[i]);
        ASSERT_LE(std::fabs(double(d[i]) - w), bound(w, p, double(c[i]))) << "vma, element " << i << " of " << n;
      }
      BOTH(vsma)(a.data(), sa, &s, b.data(), sb, d.data(), sd, n);
      for (size_t i = 0; i < n; ++i) {
        const double p = double(a[i]) * double(s), w = p + double(b[i]);
        ASSERT_LE(std::fabs(double(d[i]) - w), bound(w, p, double(b[i]))) << "vsma, element " << i << " of " << n;
      }
      BOTH(vsmsa)(a.data(), sa, &s, &t, d.data(), sd, n);
      for (size_t i = 0; i < n; ++i) {
        const double p = double(a[i]) * double(s), w = p + double(t);
        ASSERT_LE(std::fabs(double(d[i]) - w), bound(w, p, double(t))) << "vsmsa, element " << i << " of " << n;
      }
      BOTH(vclip)(a.data(), sa, &low, &high, d.data(), sd, n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(d[i], std::min(std::max(a[i], low), high)) << "vclip, element " << i;
      ASSERT_TRUE(d.gaps_unchanged());
    });
  });
}

TYPED_TEST(Vdsp, Filling) {
  using T = TypeParam;
  for_each_isa([] {
    Random random(6);
    for_each_case([&](size_t n, Stride, Stride, Stride sc) {
      Strided<T> c(n, sc, random);
      const T s = T(1.25), t = T(-0.1);
      BOTH(vfill)(&s, c.data(), sc, n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(c[i], s);
      BOTH(vramp)(&s, &t, c.data(), sc, n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(c[i], T(double(s) + double(i) * double(t)));
      BOTH(vclr)(c.data(), sc, n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(c[i], T(0));
      ASSERT_TRUE(c.gaps_unchanged());
    });
  });
}

TYPED_TEST(Vdsp, Sums) {
  using T = TypeParam;
  for_each_isa([&] {
    Random random(7);
    for_each_case([&](size_t n, Stride sa, Stride sb, Stride) {
      Strided<T> a(n, sa, random), b(n, sb, random);
      long double sum = 0, squares = 0, dot = 0, differences = 0, magnitude = 0, products = 0;
      for (size_t i = 0; i < n; ++i) {
        const long double x = a[i], y = b[i];
        sum += x, squares += x * x, dot += x * y, differences += (x - y) * (x - y);
        magnitude += std::fabs(x), products += std::fabs(x * y);
      }
      // A block of 512 is added in T, in 8 sums or more side by side; then there are the blocks, and rounding the
      // result.
      const double terms = double(std::min<size_t>(n, 512)) / 8 + double(n) / 512 + 8;
      const double eps = double(std::numeric_limits<T>::epsilon()), count = double(n);
      T got = -1;
      const auto expect = [&](const char* name, long double want, long double size) {
        ASSERT_LE(std::fabs(static_cast<long double>(got) - want), terms * eps * size + kTiny) << name << ", n " << n;
      };
      BOTH(sve)(a.data(), sa, &got, n), expect("sve", sum, magnitude);
      BOTH(svesq)(a.data(), sa, &got, n), expect("svesq", squares, squares);
      BOTH(dotpr)(a.data(), sa, b.data(), sb, &got, n), expect("dotpr", dot, products);
      BOTH(distancesq)(a.data(), sa, b.data(), sb, &got, n), expect("distancesq", differences, differences);
      BOTH(meanv)(a.data(), sa, &got, n);
      if (n == 0) {
        ASSERT_TRUE(std::isnan(got));
        return;
      }
      expect("meanv", sum / count, magnitude / count);
      BOTH(measqv)(a.data(), sa, &got, n), expect("measqv", squares / count, squares / count);
      BOTH(rmsqv)(a.data(), sa, &got, n), expect("rmsqv", std::sqrt(squares / count), std::sqrt(squares / count));
    });
  });
}

TYPED_TEST(Vdsp, BitsDoNotDependOnStrides) {
  using T = TypeParam;
  const auto sve = BOTH(sve);
  for_each_isa([&] {
    Random random(8);
    for (const size_t n : {1, 17, 511, 512, 513, 5000}) {
      Strided<T> dense(n, 1, random), strided(n, 3, random);
      for (size_t i = 0; i < n; ++i) strided[i] = dense[i];
      T x, y;
      sve(dense.data(), 1, &x, n), sve(strided.data(), 3, &y, n);
      ASSERT_EQ(x, y) << n;
    }
  });
}

// A million terms: 2048 blocks in double, after one of 512 terms whose sums are of 32 terms or less.
TYPED_TEST(Vdsp, LongSumsKeepTheirDigits) {
  using T = TypeParam;
  const size_t n = 1 << 20;
  const std::vector<T> a(n, T(0.1));
  T got;
  BOTH(sve)(a.data(), 1, &got, n);
  const double want = double(n) * double(T(0.1));
  EXPECT_NEAR(double(got), want, (sizeof(T) == 4 ? 32 : 2048) * ulp<T>(want));
}

TYPED_TEST(Vdsp, Extremes) {
  using T = TypeParam;
  const auto maxv = BOTH(maxv), minv = BOTH(minv), maxmgv = BOTH(maxmgv);
  const auto maxvi = BOTH(maxvi), minvi = BOTH(minvi);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for_each_isa([&] {
    Random random(9);
    for_each_case([&](size_t n, Stride sa, Stride, Stride) {
      Strided<T> a(n, sa, random);
      for (size_t i = 0; i < n; ++i) a[i] = T(random.integer(-9, 9));  // ties
      if (n > 3 && sa != 0) a[n / 2] = std::numeric_limits<T>::quiet_NaN();
      T largest = -kInfinity, smallest = kInfinity, magnitude = 0;
      size_t at_largest = 0, at_smallest = 0;
      for (size_t i = 0; i < n; ++i) {
        if (a[i] > largest) largest = a[i], at_largest = i;
        if (a[i] < smallest) smallest = a[i], at_smallest = i;
        if (std::fabs(a[i]) > magnitude) magnitude = std::fabs(a[i]);
      }
      T got = 0;
      Length index = 77;
      maxv(a.data(), sa, &got, n);
      ASSERT_EQ(got, largest) << n;
      minv(a.data(), sa, &got, n);
      ASSERT_EQ(got, smallest) << n;
      maxmgv(a.data(), sa, &got, n);
      ASSERT_EQ(got, magnitude) << n;
      maxvi(a.data(), sa, &got, &index, n);
      ASSERT_EQ(got, largest) << n;
      ASSERT_EQ(Stride(index), Stride(at_largest) * sa) << n;
      minvi(a.data(), sa, &got, &index, n);
      ASSERT_EQ(got, smallest) << n;
      ASSERT_EQ(Stride(index), Stride(at_smallest) * sa) << n;
    });
  });
}

TYPED_TEST(Vdsp, Normalize) {
  using T = TypeParam;
  const auto normalize = BOTH(normalize);
  for_each_isa([&] {
    Random random(10);
    for (const size_t n : {2, 3, 17, 300, 1025}) {
      for (const Stride s : {1, 2, -3}) {
        Strided<T> a(n, s, random, 100, 104), c(n, s, random);
        double sum = 0, squares = 0;
        for (size_t i = 0; i < n; ++i) sum += double(a[i]);
        const double mean = sum / double(n);
        for (size_t i = 0; i < n; ++i) squares += (double(a[i]) - mean) * (double(a[i]) - mean);
        const double deviation = std::sqrt(squares / double(n)), eps = double(std::numeric_limits<T>::epsilon());
        T m, d;
        normalize(a.data(), s, c.data(), s, &m, &d, n);
        ASSERT_NEAR(double(m), mean, double(n) * eps * mean);
        ASSERT_NEAR(double(d), deviation, 1e3 * eps * deviation);
        for (size_t i = 0; i < n; ++i) ASSERT_NEAR(double(c[i]), (double(a[i]) - mean) / deviation, 1e3 * eps);
        T m2, d2;
        normalize(a.data(), s, nullptr, 0, &m2, &d2, n);
        ASSERT_EQ(m, m2);
        ASSERT_EQ(d, d2);
      }
    }
  });
}

TYPED_TEST(Vdsp, Matrices) {
  using T = TypeParam;
  const auto mmul = BOTH(mmul);
  const auto mtrans = BOTH(mtrans);
  Random random(11);
  for (const size_t m : {0, 1, 3, 17, 40}) {
    for (const size_t n : {1, 2, 16, 33}) {
      for (const size_t p : {0, 1, 5, 31}) {
        for (const Stride s : {1, 2, -1}) {
          Strided<T> a(m * p, s, random), b(p * n, s, random), c(m * n, s, random), t(n * m, s, random);
          mmul(a.data(), s, b.data(), s, c.data(), s, m, n, p);
          for (size_t i = 0; i < m; ++i) {
            for (size_t j = 0; j < n; ++j) {
              double w = 0, size = 0;
              for (size_t k = 0; k < p; ++k) {
                w += double(a[i * p + k]) * double(b[k * n + j]);
                size += std::fabs(double(a[i * p + k]) * double(b[k * n + j]));
              }
              ASSERT_NEAR(double(c[i * n + j]), w, double(p) * ulp<T>(size)) << m << " " << n << " " << p;
            }
          }
          mtrans(c.data(), s, t.data(), s, n, m);  // t (n x m) = transpose of c (m x n)
          for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < m; ++j) ASSERT_EQ(t[i * m + j], c[j * n + i]);
          }
          ASSERT_TRUE(c.gaps_unchanged() && t.gaps_unchanged());
        }
      }
    }
  }
}

TYPED_TEST(Vdsp, Sorting) {
  using T = TypeParam;
  const auto sort = BOTH(vsort);
  Random random(12);
  for (const size_t n : {0, 1, 2, 100}) {
    Strided<T> c(n, 1, random);
    sort(c.data(), n, 1);
    EXPECT_TRUE(std::is_sorted(c.data(), c.data() + n));
    sort(c.data(), n, -1);
    EXPECT_TRUE(std::is_sorted(c.data(), c.data() + n, std::greater<T>()));
  }
  T with_nan[] = {3, std::numeric_limits<T>::quiet_NaN(), 1, 2};
  sort(with_nan, 4, 1);
  EXPECT_TRUE(with_nan[0] == 1 && with_nan[1] == 2 && with_nan[2] == 3 && std::isnan(with_nan[3]));
}

// Non-temporal stores begin at kStreamBytes, at any alignment, and stay inside.
TYPED_TEST(Vdsp, LargeVectors) {
  using T = TypeParam;
  const auto vsmul = BOTH(vsmul);
  for_each_isa([&] {
    const size_t n = (size_t(8) << 20) / sizeof(T) + 5;
    Random random(13);
    Guarded<T> a(n), c(n, Guarded<T>::Side::begin), shifted(n, Guarded<T>::Side::end);
    for (size_t i = 0; i < n; ++i) a[i] = T(i % 1000);
    const T two = 2;
    vsmul(a.data(), 1, &two, c.data(), 1, n);
    vsmul(a.data(), 1, &two, shifted.data(), 1, n);
    for (size_t i = 0; i < n; ++i) ASSERT_TRUE(c[i] == 2 * a[i] && shifted[i] == c[i]) << i;
    vsmul(a.data(), 1, &two, a.data(), 1, n);  // in place
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], c[i]);
  });
}

template <class T, class Integer>
void check_to_integers(void (*f)(const T*, Stride, Integer*, Stride, Length) noexcept, bool nearest) {
  const T values[] = {T(0),    T(0.5),   T(1.5),   T(2.5),   T(-0.5),         T(-1.5),
                      T(-2.7), T(99.99), T(127),   T(128),   T(-129),         T(255),
                      T(256),  T(-1),    T(40000), T(7e4),   T(-4e4),         T(3e9),
                      T(-3e9), T(5e9),   T(1e30),  T(-1e30), T(std::nan("")), std::numeric_limits<T>::infinity()};
  constexpr double low = std::numeric_limits<Integer>::min(), high = std::numeric_limits<Integer>::max();
  const size_t n = std::size(values);
  for (Stride s = 1; s <= 3; ++s) {
    std::vector<Integer> c(n * size_t(s), Integer(42));
    f(values, 1, c.data(), s, n);
    for (size_t i = 0; i < n; ++i) {
      const double x = double(values[i]), r = nearest ? std::nearbyint(x) : std::trunc(x);
      const Integer want = std::isnan(x) ? Integer(0) : Integer(std::clamp(r, low, high));
      ASSERT_EQ(c[i * size_t(s)], want) << x;
      ASSERT_TRUE(s == 1 || c[i * size_t(s) + 1] == Integer(42));
    }
  }
}
template <class Integer, class T>
void check_from_integers(void (*f)(const Integer*, Stride, T*, Stride, Length) noexcept) {
  const Integer values[] = {0, 1, 100, std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()};
  for (Stride s = 1; s <= 3; ++s) {
    std::vector<T> c(5 * size_t(s));
    f(values, 1, c.data(), s, 5);
    for (size_t i = 0; i < 5; ++i) ASSERT_EQ(c[i * size_t(s)], T(values[i]));
  }
}
#define CHECK_BOTH(check, f, ...) \
  check(&vDSP_##f __VA_OPT__(, ) __VA_ARGS__), check(&vDSP_##f##D __VA_OPT__(, ) __VA_ARGS__)

TEST(VdspTypes, Integers) {
  CHECK_BOTH(check_to_integers, vfix8, false), CHECK_BOTH(check_to_integers, vfix16, false);
  CHECK_BOTH(check_to_integers, vfix32, false), CHECK_BOTH(check_to_integers, vfixu8, false);
  CHECK_BOTH(check_to_integers, vfixu16, false), CHECK_BOTH(check_to_integers, vfixu32, false);
  CHECK_BOTH(check_to_integers, vfixr8, true), CHECK_BOTH(check_to_integers, vfixr16, true);
  CHECK_BOTH(check_to_integers, vfixr32, true), CHECK_BOTH(check_to_integers, vfixru8, true);
  CHECK_BOTH(check_to_integers, vfixru16, true), CHECK_BOTH(check_to_integers, vfixru32, true);
  CHECK_BOTH(check_from_integers, vflt8), CHECK_BOTH(check_from_integers, vflt16);
  CHECK_BOTH(check_from_integers, vflt32), CHECK_BOTH(check_from_integers, vfltu8);
  CHECK_BOTH(check_from_integers, vfltu16), CHECK_BOTH(check_from_integers, vfltu32);
}

TEST(VdspTypes, Precision) {
  const float a[] = {0.1f, 2, -3};
  double d[3];
  float back[3];
  vDSP_vspdp(a, 1, d, 1, 3);
  vDSP_vdpsp(d, 1, back, 1, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(d[i] == double(a[i]) && back[i] == a[i]);
}

}  // namespace
}  // namespace bnns::testing
