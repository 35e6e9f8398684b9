// Convolution and pooling.
//
// A convolution is a matrix product of the kernel [F/group, C/group * h * w] with the image laid
// out as columns [C/group * h * w, outputs], per image and group; a 1x1 kernel with stride 1 and no
// pads needs no columns. Kernels with one input channel a group (depthwise) go without a product:
// there the columns would cost more than the arithmetic.
#include <algorithm>
#include <limits>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {
namespace {

// One spatial axis of a window operator.
struct Side {
  std::int64_t image = 1, kernel = 1, out = 1, stride = 1, dilation = 1, before = 0;
  std::int64_t Read(std::int64_t i, std::int64_t k) const {
    return i * stride + k * dilation - before;
  }
  // The outputs [first, last) whose kernel position k lies inside the image.
  std::int64_t First(std::int64_t k) const {
    const std::int64_t missing = before - k * dilation;
    return missing <= 0 ? 0 : std::min(out, (missing + stride - 1) / stride);
  }
  std::int64_t Last(std::int64_t k) const {
    const std::int64_t room = image - 1 + before - k * dilation;
    return room < 0 ? 0 : std::min(out, room / stride + 1);
  }
};

Side MakeSide(int a, const Values& x, std::int64_t kernel, const Values& out,
              const ops::Short<ops::Size>& strides, const ops::Short<ops::Size>& pads,
              const ops::Short<ops::Size>* dilations) {
  return {x.extents[2 + a],
          kernel,
          out.extents[2 + a],
          strides[a].constant(),
          dilations == nullptr ? 1 : (*dilations)[a].constant(),
          pads[a].constant()};
}

// row[i] (+)= weight * image row read at kernel column s.
void AddRow(const Side& w, std::int64_t s, double weight, const double* image, double* row) {
  const std::int64_t last = w.Last(s), shift = s * w.dilation - w.before;
  for (std::int64_t j = w.First(s); j < last; ++j) row[j] += weight * image[j * w.stride + shift];
}

void Depthwise(const Side& h, const Side& w, const double* image, const double* kernel,
               double* out) {
  for (std::int64_t r = 0; r < h.kernel; ++r) {
    for (std::int64_t s = 0; s < w.kernel; ++s) {
      for (std::int64_t i = h.First(r); i < h.Last(r); ++i) {
        AddRow(w, s, kernel[r * w.kernel + s], image + h.Read(i, r) * w.image, out + i * w.out);
      }
    }
  }
}

// The columns of one image and group for the output rows [from, to).
void Columns(const Side& h, const Side& w, std::int64_t channels, const double* image,
             std::int64_t from, std::int64_t to, std::vector<double>& columns) {
  const std::int64_t width = (to - from) * w.out;
  columns.assign(std::size_t(channels * h.kernel * w.kernel * width), 0);
  double* row = columns.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    const double* plane = image + c * h.image * w.image;
    for (std::int64_t r = 0; r < h.kernel; ++r) {
      for (std::int64_t s = 0; s < w.kernel; ++s, row += width) {
        for (std::int64_t i = std::max(from, h.First(r)); i < std::min(to, h.Last(r)); ++i) {
          AddRow(w, s, 1, plane + h.Read(i, r) * w.image, row + (i - from) * w.out);
        }
      }
    }
  }
}

}  // namespace

void Convolve(const ops::Conv& op, std::span<const Values* const> in, Values& out) {
  const Values &x = *in[0], &kernel = *in[1];
  const Side h = MakeSide(0, x, kernel.extents[2], out, op.strides, op.pads, &op.dilations);
  const Side w = MakeSide(1, x, kernel.extents[3], out, op.strides, op.pads, &op.dilations);
  const std::int64_t groups = op.group.constant(), channels = kernel.extents[1];
  const std::int64_t filters = kernel.extents[0] / groups, depth = channels * h.kernel * w.kernel;
  const std::int64_t in_plane = h.image * w.image, out_plane = h.out * w.out;
  const bool plain = depth == channels && in_plane == out_plane && h.stride == 1 && w.stride == 1 &&
                     h.before == 0 && w.before == 0;
  // Output rows at a time, so that the columns stay within the cache's reach.
  const std::int64_t rows = std::clamp<std::int64_t>((1 << 18) / (depth * w.out), 1, h.out);
  std::vector<double> columns, product;
  for (std::int64_t n = 0; n < x.extents[0]; ++n) {
    for (std::int64_t g = 0; g < groups; ++g) {
      const double* image = x.data.data() + (n * groups + g) * channels * in_plane;
      const double* weights = kernel.data.data() + g * filters * depth;
      double* to = out.data.data() + (n * groups + g) * filters * out_plane;
      if (channels == 1) {
        for (std::int64_t f = 0; f < filters; ++f) {
          Depthwise(h, w, image, weights + f * depth, to + f * out_plane);
        }
        continue;
      }
      if (plain) {
        Gemm(filters, out_plane, channels, weights, image, to);
        continue;
      }
      for (std::int64_t from = 0; from < h.out; from += rows) {
        const std::int64_t end = std::min(h.out, from + rows), width = (end - from) * w.out;
        Columns(h, w, channels, image, from, end, columns);
        product.assign(std::size_t(filters * width), 0);
        Gemm(filters, width, depth, weights, columns.data(), product.data());
        for (std::int64_t f = 0; f < filters; ++f) {
          std::copy_n(product.data() + f * width, width, to + f * out_plane + from * w.out);
        }
      }
    }
  }
  if (op.HasBias(int(in.size()))) {
    const std::int64_t all = kernel.extents[0];
    for (std::int64_t block = 0; block < x.extents[0] * all; ++block) {
      double* to = out.data.data() + block * out_plane;
      for (std::int64_t k = 0; k < out_plane; ++k) to[k] += in[2]->data[std::size_t(block % all)];
    }
  }
  if (op.residual == 1) {
    for (std::size_t k = 0; k < out.data.size(); ++k) out.data[k] += in.back()->data[k];
  }
  Activate(op.activation, out.data);
}

namespace {

// Calls f(output, kernel-window bounds in the image) for every output of every plane.
template <class Op, class F>
void ForEachWindow(const Op& op, const Values& x, Values& out, F f) {
  const Side h = MakeSide(0, x, op.kernel_shape[0].constant(), out, op.strides, op.pads, nullptr);
  const Side w = MakeSide(1, x, op.kernel_shape[1].constant(), out, op.strides, op.pads, nullptr);
  double* to = out.data.data();
  for (std::int64_t plane = 0; plane < x.extents[0] * x.extents[1]; ++plane) {
    const double* image = x.data.data() + plane * h.image * w.image;
    for (std::int64_t i = 0; i < h.out; ++i) {
      const std::int64_t top = std::max<std::int64_t>(0, h.Read(i, 0));
      const std::int64_t bottom = std::min(h.image, h.Read(i, 0) + h.kernel);
      for (std::int64_t j = 0; j < w.out; ++j) {
        const std::int64_t left = std::max<std::int64_t>(0, w.Read(j, 0));
        const std::int64_t right = std::min(w.image, w.Read(j, 0) + w.kernel);
        *to++ = f(image, w.image, top, bottom, left, right);
      }
    }
  }
}

}  // namespace

void AveragePool(const ops::AveragePool& op, const Values& x, Values& out) {
  const double all = double(op.kernel_shape[0].constant() * op.kernel_shape[1].constant());
  ForEachWindow(op, x, out,
                [&](const double* image, std::int64_t width, std::int64_t top, std::int64_t bottom,
                    std::int64_t left, std::int64_t right) {
                  double sum = 0;
                  for (std::int64_t i = top; i < bottom; ++i) {
                    for (std::int64_t j = left; j < right; ++j) sum += image[i * width + j];
                  }
                  const double seen = double((bottom - top) * (right - left));
                  return sum / (op.count_include_pad == 1 ? all : seen);
                });
}

void MaxPool(const ops::MaxPool& op, const Values& x, Values& out) {
  ForEachWindow(op, x, out,
                [](const double* image, std::int64_t width, std::int64_t top, std::int64_t bottom,
                   std::int64_t left, std::int64_t right) {
                  double best = -std::numeric_limits<double>::infinity();
                  for (std::int64_t i = top; i < bottom; ++i) {
                    for (std::int64_t j = left; j < right; ++j) {
                      best = std::max(best, image[i * width + j]);
                    }
                  }
                  return best;
                });
}

}  // namespace tenon::optimizer
