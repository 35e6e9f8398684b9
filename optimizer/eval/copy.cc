#include <algorithm>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {

Extents StridesOf(const Extents& extents) {
  Extents out = extents;
  std::int64_t stride = 1;
  for (int a = extents.size(); a-- > 0;) {
    out[a] = stride;
    stride *= extents[a];
  }
  return out;
}

namespace {

// Calls f(position) for the positions of all axes but the last.
template <class F>
void ForEachRow(const Extents& extents, F f) {
  Extents at = Extents::Filled(extents.size(), 0);
  const int last = extents.size() - 1;
  for (;;) {
    f(at);
    int a = last - 1;
    while (a >= 0 && ++at[a] == extents[a]) at[a--] = 0;
    if (a < 0) return;
  }
}

}  // namespace

void CopyStrided(const double* in, const Extents& strides, Values& out) {
  if (out.extents.empty()) {
    out.data[0] = in[0];
    return;
  }
  const int last = out.extents.size() - 1;
  const std::int64_t n = out.extents[last], step = strides[last];
  double* to = out.data.data();
  ForEachRow(out.extents, [&](const Extents& at) {
    const double* from = in;
    for (int a = 0; a < last; ++a) from += at[a] * strides[a];
    for (std::int64_t k = 0; k < n; ++k) to[k] = from[k * step];
    to += n;
  });
}

void CopyInto(const Values& block, const Extents& at, Values& out) {
  if (block.extents.empty()) {
    out.data = block.data;
    return;
  }
  const Extents strides = StridesOf(out.extents);
  const int last = block.extents.size() - 1;
  const double* from = block.data.data();
  ForEachRow(block.extents, [&](const Extents& position) {
    std::int64_t offset = at[last];
    for (int a = 0; a < last; ++a) offset += (at[a] + position[a]) * strides[a];
    std::copy_n(from, block.extents[last], out.data.data() + offset);
    from += block.extents[last];
  });
}

}  // namespace tenon::optimizer
