// The reference contraction: double precision, one loop over all letters.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace bnns::ref {

// A tensor by letters: the first letter's index is the fastest. An extent of 1 is read for every value of the letter.
struct Lettered {
  std::string letters;
  std::vector<size_t> size;
  std::vector<double> value;

  Lettered() = default;
  Lettered(std::string l, std::vector<size_t> s) : letters(std::move(l)), size(std::move(s)) {
    size_t count = 1;
    for (size_t extent : size) count *= extent;
    value.assign(count, 0.0);
  }
  // The distance between neighbours along a letter; 0 if the tensor does not have it, or has one of it.
  size_t stride(char letter) const {
    size_t stride = 1;
    for (size_t k = 0; k < letters.size(); stride *= size[k++]) {
      if (letters[k] == letter) return size[k] == 1 ? 0 : stride;
    }
    return 0;
  }
};

// f(offset in x, in y, in z) for every combination of the letters of the three.
template <class F>
void for_each_index(const Lettered& x, const Lettered& y, const Lettered& z, F&& f) {
  std::string letters;
  std::vector<size_t> extent;
  for (const Lettered* t : {&x, &y, &z}) {
    for (size_t k = 0; k < t->letters.size(); ++k) {
      const size_t at = letters.find(t->letters[k]);
      if (at == std::string::npos) {
        letters += t->letters[k];
        extent.push_back(t->size[k]);
      } else if (t->size[k] > extent[at]) {
        extent[at] = t->size[k];
      }
    }
  }
  std::vector<size_t> index(letters.size(), 0), dx, dy, dz;
  for (const char letter : letters) {
    dx.push_back(x.stride(letter)), dy.push_back(y.stride(letter)), dz.push_back(z.stride(letter));
  }
  size_t ox = 0, oy = 0, oz = 0;
  for (;;) {
    f(ox, oy, oz);
    size_t k = 0;
    for (; k < letters.size(); ++k) {
      ox += dx[k], oy += dy[k], oz += dz[k];
      if (++index[k] != extent[k]) break;
      ox -= dx[k] * extent[k], oy -= dy[k] * extent[k], oz -= dz[k] * extent[k];
      index[k] = 0;
    }
    if (k == letters.size()) return;
  }
}

// c += alpha * sum of a b. Without B, b is a number: letters "" and value {1}.
inline void contract(double alpha, const Lettered& a, const Lettered& b, Lettered& c) {
  for_each_index(a, b, c, [&](size_t i, size_t j, size_t k) { c.value[k] += alpha * a.value[i] * b.value[j]; });
}

// da += alpha * sum of dc b,  db += alpha * sum of a dc
inline void contract_backward(double alpha, const Lettered& a, const Lettered& b, const Lettered& dc, Lettered& da,
                              Lettered& db) {
  for_each_index(a, b, dc, [&](size_t i, size_t j, size_t k) {
    da.value[i] += alpha * dc.value[k] * b.value[j];
    db.value[j] += alpha * dc.value[k] * a.value[i];
  });
}

}  // namespace bnns::ref
