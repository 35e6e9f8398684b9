// Short: a list with a fixed ceiling, so that indexing a tensor never allocates.
#pragma once

#include <array>
#include <initializer_list>

#include "core/base/check.h"

namespace tenon::base {

// The highest rank of a tensor; shapes, codecs and operators rely on it. ONNX models go to rank 6
// in practice (pixel shuffle); the importer refuses to understand what is above.
inline constexpr int kRankMax = 8;

// Thread-compatible value type. At most kRankMax entries; going over is a CHECK failure.
template <class T>
class Short {
 public:
  Short() = default;
  Short(std::initializer_list<T> list) {
    for (const T& x : list) push_back(x);
  }
  // `count` copies of `value`.
  static Short Filled(int count, const T& value) {
    Short s;
    for (int a = 0; a < count; ++a) s.push_back(value);
    return s;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](int a) { return at_[static_cast<unsigned>(a)]; }
  const T& operator[](int a) const { return at_[static_cast<unsigned>(a)]; }
  void push_back(const T& value) {
    CHECK(size_ < kRankMax);
    at_[static_cast<unsigned>(size_++)] = value;
  }
  void erase(int a) {
    for (int b = a; b + 1 < size_; ++b) (*this)[b] = (*this)[b + 1];
    at_[static_cast<unsigned>(--size_)] = T{};
  }
  void insert(int a, const T& value) {
    push_back(value);
    for (int b = size_ - 1; b > a; --b) (*this)[b] = (*this)[b - 1];
    (*this)[a] = value;
  }
  T* begin() { return at_.data(); }
  T* end() { return at_.data() + size_; }
  const T* begin() const { return at_.data(); }
  const T* end() const { return at_.data() + size_; }

  friend bool operator==(const Short& a, const Short& b) {
    if (a.size_ != b.size_) return false;
    for (int k = 0; k < a.size_; ++k) {
      if (!(a[k] == b[k])) return false;
    }
    return true;
  }

 private:
  std::array<T, kRankMax> at_{};
  int size_ = 0;
};

}  // namespace tenon::base
