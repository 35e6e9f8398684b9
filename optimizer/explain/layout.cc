// Sugiyama's method in its simplest form that looks well:
//   1. layers: a box stands one layer below its lowest operand; an input moves down to just above
//      its first user;
//   2. an edge that passes layers gets an invisible box in each;
//   3. order within layers: sweeps down and up, sorting by the mean position of neighbours, and the
//      order with the fewest crossings is kept;
//   4. positions: boxes are pulled to the mean of their neighbours and pushed apart, alternately.
#include "optimizer/explain/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace tenon::optimizer {
namespace {

constexpr double kGapX = 22, kGapY = 34, kBendWidth = 10;
// An edge that passes more layers goes straight, whatever is in the way: bends in each layer of a
// deep graph would be quadratic in its size, and nobody could follow the edge anyway.
constexpr int kLayersPassed = 80;
constexpr int kOrderSweeps = 12, kPositionSweeps = 40;

struct Item {
  int box = -1;  // -1: a bend of an edge.
  int layer = 0;
  double width = kBendWidth, height = 0;
  double x = 0;
  std::vector<int> up, down;  // Neighbours in the layers next to this one.
};

class LayoutMaker {
 public:
  LayoutMaker(const std::vector<LayoutSize>& sizes, const std::vector<std::vector<int>>& operands)
      : operands_(operands), items_(sizes.size()) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      items_[k].box = int(k);
      items_[k].width = sizes[k].width;
      items_[k].height = sizes[k].height;
    }
  }

  Layout Make() {
    if (items_.empty()) return {};
    AssignLayers();
    AddBends();
    Order();
    Place();
    return Result();
  }

 private:
  Item& item(int k) { return items_[std::size_t(k)]; }

  void AssignLayers() {
    const std::size_t count = operands_.size();
    for (std::size_t k = 0; k < count; ++k) {
      for (const int o : operands_[k]) {
        items_[k].layer = std::max(items_[k].layer, item(o).layer + 1);
      }
    }
    std::vector<int> first_user(count, -1);
    for (std::size_t k = count; k-- > 0;) {
      for (const int o : operands_[k]) {
        int& f = first_user[std::size_t(o)];
        f = f < 0 ? items_[k].layer : std::min(f, items_[k].layer);
      }
    }
    for (std::size_t k = 0; k < count; ++k) {
      if (operands_[k].empty() && first_user[k] > 0) items_[k].layer = first_user[k] - 1;
    }
  }

  void AddBends() {
    paths_.resize(operands_.size());
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      for (const int o : operands_[k]) {
        std::vector<int> path{o};
        if (items_[k].layer - item(o).layer > kLayersPassed) {
          path.push_back(int(k));
          paths_[k].push_back(std::move(path));
          continue;
        }
        for (int layer = item(o).layer + 1; layer < items_[k].layer; ++layer) {
          Item bend;
          bend.layer = layer;
          items_.push_back(bend);
          path.push_back(int(items_.size()) - 1);
        }
        path.push_back(int(k));
        for (std::size_t p = 0; p + 1 < path.size(); ++p) {
          item(path[p]).down.push_back(path[p + 1]);
          item(path[p + 1]).up.push_back(path[p]);
        }
        paths_[k].push_back(std::move(path));
      }
    }
    int layers = 0;
    for (const Item& i : items_) layers = std::max(layers, i.layer + 1);
    layers_.resize(std::size_t(layers));
    for (std::size_t k = 0; k < items_.size(); ++k) {
      layers_[std::size_t(items_[k].layer)].push_back(int(k));
    }
  }

  std::vector<double> Ranks() const {
    std::vector<double> rank(items_.size());
    for (const auto& layer : layers_) {
      for (std::size_t k = 0; k < layer.size(); ++k) rank[std::size_t(layer[k])] = double(k);
    }
    return rank;
  }

  std::int64_t Crossings() const {
    const std::vector<double> rank = Ranks();
    std::int64_t crossings = 0;
    for (const auto& layer : layers_) {
      std::vector<double> ends;  // Of the edges downwards, in the order of this layer.
      for (const int k : layer) {
        std::vector<double> own;
        for (const int d : items_[std::size_t(k)].down) own.push_back(rank[std::size_t(d)]);
        std::sort(own.begin(), own.end());
        for (const double e : own) {
          crossings += std::count_if(ends.begin(), ends.end(), [&](double x) { return x > e; });
        }
        ends.insert(ends.end(), own.begin(), own.end());
      }
    }
    return crossings;
  }

  void Sort(std::vector<int>& layer, bool by_up) {
    const std::vector<double> rank = Ranks();
    const auto centre = [&](int k) {
      const auto& near = by_up ? item(k).up : item(k).down;
      if (near.empty()) return rank[std::size_t(k)];
      double sum = 0;
      for (std::size_t n = 0; n < near.size(); ++n) {
        // A hair's breadth to keep the order of operands where nothing else decides.
        sum += rank[std::size_t(near[n])] + 1e-6 * double(n);
      }
      return sum / double(near.size());
    };
    std::vector<std::pair<double, int>> keyed;
    for (const int k : layer) keyed.emplace_back(centre(k), k);
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < layer.size(); ++k) layer[k] = keyed[k].second;
  }

  void Order() {
    auto best = layers_;
    std::int64_t fewest = Crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      if (sweep % 2 == 0) {
        for (std::size_t l = 1; l < layers_.size(); ++l) Sort(layers_[l], true);
      } else {
        for (std::size_t l = layers_.size() - 1; l-- > 0;) Sort(layers_[l], false);
      }
      const std::int64_t crossings = Crossings();
      if (crossings < fewest) {
        fewest = crossings;
        best = layers_;
      }
    }
    layers_ = best;
  }

  // Moves the boxes of a layer to where they want to be, as far as their order and width allow:
  // neighbours that want the same place share the difference.
  void Pull(const std::vector<int>& layer) {
    struct Block {
      double want, weight, width;  // `want` is of its left end.
      std::size_t first;
    };
    std::vector<Block> blocks;
    for (std::size_t p = 0; p < layer.size(); ++p) {
      Item& i = item(layer[p]);
      double sum = 0, n = 0;
      const auto pull = [&](const std::vector<int>& neighbours) {
        for (const int other : neighbours) {
          // A box follows boxes rather than edges that come from afar, a bend its own edge.
          const double w = i.box >= 0 && item(other).box < 0 ? 0.1 : 1;
          sum += w * item(other).x;
          n += w;
        }
      };
      pull(i.up);
      pull(i.down);
      const double weight = n == 0 ? 0.05 : i.box < 0 ? 2.0 : 1.0;
      blocks.push_back({(n == 0 ? i.x : sum / n) - i.width / 2, weight, i.width + kGapX, p});
      while (blocks.size() > 1) {
        Block& b = blocks.back();
        Block& a = blocks[blocks.size() - 2];
        if (a.want + a.width <= b.want) break;
        const double total = a.weight + b.weight;
        a.want = (a.want * a.weight + (b.want - a.width) * b.weight) / total;
        a.weight = total;
        a.width += b.width;
        blocks.pop_back();
      }
    }
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::size_t end = b + 1 < blocks.size() ? blocks[b + 1].first : layer.size();
      double left = blocks[b].want;
      for (std::size_t p = blocks[b].first; p < end; ++p) {
        Item& i = item(layer[p]);
        i.x = left + i.width / 2;
        left += i.width + kGapX;
      }
    }
  }

  void Place() {
    for (const auto& layer : layers_) {
      double left = 0;
      for (const int k : layer) {
        item(k).x = left + item(k).width / 2;
        left += item(k).width + kGapX;
      }
      for (const int k : layer) item(k).x -= left / 2;
    }
    for (int sweep = 0; sweep < kPositionSweeps; ++sweep) {
      // Both neighbours count in each sweep: pulled by one side only, long chains drift away.
      if (sweep % 2 == 0) {
        for (const auto& layer : layers_) Pull(layer);
      } else {
        for (std::size_t l = layers_.size(); l-- > 0;) Pull(layers_[l]);
      }
    }
  }

  Layout Result() {
    double left = 0, right = 0;
    for (const Item& i : items_) {
      left = std::min(left, i.x - i.width / 2);
      right = std::max(right, i.x + i.width / 2);
    }
    std::vector<double> top(layers_.size() + 1, 0), height(layers_.size(), 0);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (const int k : layers_[l]) height[l] = std::max(height[l], item(k).height);
      top[l + 1] = top[l] + height[l] + kGapY;
    }
    const auto middle = [&](const Item& i) {
      return top[std::size_t(i.layer)] + height[std::size_t(i.layer)] / 2;
    };
    Layout out;
    out.width = right - left;
    out.height = top.back() - kGapY;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      out.centres.push_back({items_[k].x - left, middle(items_[k])});
    }
    out.edges.resize(operands_.size());
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      for (std::size_t n = 0; n < paths_[k].size(); ++n) {
        const std::vector<int>& path = paths_[k][n];
        const Item& from = item(path.front());
        const Item& to = items_[k];
        std::vector<Point> points{{from.x - left, middle(from) + from.height / 2}};
        for (std::size_t p = 1; p + 1 < path.size(); ++p) {
          // Straight down beside the boxes of this layer.
          const auto l = std::size_t(item(path[p]).layer);
          points.push_back({item(path[p]).x - left, top[l]});
          points.push_back({item(path[p]).x - left, top[l] + height[l]});
        }
        // Several operands arrive side by side, in their order.
        const double share = double(n + 1) / double(paths_[k].size() + 1) - 0.5;
        const double spread = paths_[k].size() > 1 ? share * std::min(to.width, 90.0) : 0;
        points.push_back({to.x - left + spread, middle(to) - to.height / 2});
        out.edges[k].push_back(std::move(points));
      }
    }
    return out;
  }

  const std::vector<std::vector<int>>& operands_;
  std::vector<Item> items_;
  std::vector<std::vector<int>> layers_;  // Items by layer, from left to right.
  std::vector<std::vector<std::vector<int>>>
      paths_;  // By box and operand: items from top to bottom.
};

}  // namespace

Layout LayOut(const std::vector<LayoutSize>& sizes, const std::vector<std::vector<int>>& operands) {
  return LayoutMaker(sizes, operands).Make();
}

}  // namespace tenon::optimizer
