// Every term of the levels below has its image among them, since levels hold all terms in normal
// order. So an image is a look-up, and "smallest of its orbit" compares a few numbers.
#include "worker/renaming.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tenon::worker {

StatusOr<Renamings> Renamings::Of(const Levels& levels) {
  const graph::Universe& u = levels.universe();
  const auto alike = [&](std::size_t a, std::size_t b) {
    return u.inputs[a].kind == u.inputs[b].kind && u.inputs[a].extents == u.inputs[b].extents;
  };
  Renamings out;
  std::vector<TermId> to(u.inputs.size(), graph::kNoTerm);
  Status status = OkStatus();
  // Lexicographic order, so the identity comes first.
  const auto extend = [&](auto&& self, std::size_t k) -> void {
    if (!status.ok()) return;
    if (k == to.size()) {
      out.to_.push_back(to);
      if (out.to_.size() > kMax) {
        status = base::ResourceExhausted(fmt::format(
            "universe {}: more than {} renamings of its inputs; use exhaustive mode, or fewer "
            "inputs of one type",
            u.name, kMax));
      }
      return;
    }
    for (std::size_t image = 0; image < to.size(); ++image) {
      const TermId id = static_cast<TermId>(image);
      if (!alike(k, image) || std::count(to.begin(), to.begin() + static_cast<long>(k), id) != 0) {
        continue;
      }
      to[k] = id;
      self(self, k + 1);
    }
  };
  extend(extend, 0);
  RETURN_IF_ERROR(status);
  out.images_.assign(out.to_.size(), {});
  out.ExtendTo(levels);
  return out;
}

std::size_t Renamings::Compose(std::size_t a, std::size_t b) const {
  std::vector<TermId> to;
  for (TermId id : to_[b]) to.push_back(to_[a][static_cast<std::size_t>(id)]);
  const auto it = std::find(to_.begin(), to_.end(), to);
  CHECK(it != to_.end());
  return static_cast<std::size_t>(it - to_.begin());
}

std::size_t Renamings::Inverse(std::size_t a) const {
  for (std::size_t b = 0; b < to_.size(); ++b) {
    if (Compose(a, b) == 0) return b;
  }
  CHECK(false);
  return 0;
}

void Renamings::ExtendTo(const Levels& levels) {
  const graph::TermTable& table = levels.table();
  Buffer buffer;
  for (std::size_t r = 0; r < to_.size(); ++r) {
    std::vector<TermId>& images = images_[r];
    for (TermId id = static_cast<TermId>(images.size()); id < levels.end(levels.depth()); ++id) {
      if (table.is_input(id)) {
        images.push_back(to_[r][static_cast<std::size_t>(id)]);
        continue;
      }
      images.push_back(
          table.Find(table.op_id(id), ImageOf(r, table.op(id), table.operands(id), buffer)));
      CHECK(images.back() != graph::kNoTerm);
    }
  }
}

std::span<const TermId> Renamings::ImageOf(std::size_t renaming, const ops::Operator& op,
                                           std::span<const TermId> operands, Buffer& buffer) const {
  for (std::size_t k = 0; k < operands.size(); ++k) buffer[k] = Image(renaming, operands[k]);
  if (ops::InfoOf(op).commutative && buffer[1] < buffer[0]) std::swap(buffer[0], buffer[1]);
  return {buffer.data(), operands.size()};
}

bool Renamings::IsCanonical(const ops::Operator& op, std::span<const TermId> operands) const {
  Buffer buffer;
  for (std::size_t r = 1; r < to_.size(); ++r) {
    const std::span<const TermId> image = ImageOf(r, op, operands, buffer);
    if (std::ranges::lexicographical_compare(image, operands)) return false;
  }
  return true;
}

bool Renamings::IsCanonical(TermId id) const {
  for (std::size_t r = 1; r < to_.size(); ++r) {
    if (Image(r, id) < id) return false;
  }
  return true;
}

}  // namespace tenon::worker
