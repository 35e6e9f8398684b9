// A dense tensor at concrete extents, in row-major order.
#pragma once

#include <vector>

#include "core/graph/type.h"

namespace tenon::eval {

template <class T>
struct Tensor {
  graph::Extents extents;
  std::vector<T> data;  // ElementCount(extents) of them.
};

}  // namespace tenon::eval
