#include "optimizer/device/device.h"

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/device/roofline.h"
#include "tests/optimizer/lecture_graphs.h"

namespace tenon::optimizer {
namespace {

using ops::Activation;
using ::testing::HasSubstr;

std::unique_ptr<const Device> Open(std::string_view spec) {
  auto device = OpenDevice(spec);
  CHECK(device.ok());
  return *std::move(device);
}

double Cost(std::string_view spec, const graph::Graph& g) {
  return CostOfGraph(*Open(spec), g, g.outputs()).us;
}

// The block after its rewrites: merged or not, with the residual fused or not.
graph::Graph RewrittenBlock(bool merged, bool residual) {
  Builder b;
  const auto x = b.Activation("x", {32, 64, 56, 56});
  const auto w2 = b.Weight("w2", {64, 64, 3, 3});
  graph::NodeId left = 0, right = 0;
  if (merged) {
    const auto w = b.Weight("w1|w3", {128, 64, 3, 3});
    const auto both = b.Add(Conv3x3(Activation::kRelu), {x, w});
    left = b.Add(ops::Slice{.axis = 1, .start = 0, .end = 64}, {both});
    right = b.Add(ops::Slice{.axis = 1, .start = 64, .end = 128}, {both});
  } else {
    ops::Conv one;
    one.activation = Activation::kRelu;
    left = b.Add(Conv3x3(Activation::kRelu), {x, b.Weight("w1", {64, 64, 3, 3})});
    right = b.Add(one, {x, b.Weight("w3", {64, 64, 1, 1})});
  }
  if (residual) return b.Done({b.Add(Conv3x3(Activation::kRelu, true), {left, w2, right})});
  const auto sum = b.Add(ops::Add{}, {b.Add(Conv3x3(), {left, w2}), right});
  return b.Done({b.Add(ops::Relu{}, {sum})});
}

TEST(RooflineTest, ResnetBlockCostsWhatTheLectureSays) {
  EXPECT_NEAR(Cost("roofline:h100", ResnetBlock()), 85.6, 0.05);
  EXPECT_NEAR(Cost("roofline:h100", RewrittenBlock(false, false)), 62.2, 0.05);
  EXPECT_NEAR(Cost("roofline:h100", RewrittenBlock(true, false)), 57.8, 0.05);
  EXPECT_NEAR(Cost("roofline:h100", RewrittenBlock(false, true)), 38.9, 0.05);
  EXPECT_NEAR(Cost("roofline:h100", RewrittenBlock(true, true)), 34.5, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", ResnetBlock()), 5182.4, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", RewrittenBlock(false, true)), 3986.4, 0.05);
}

TEST(RooflineTest, MergedConvolutionCostsWhatTheLectureSays) {
  Builder b;
  const auto x = b.Activation("x", {32, 64, 56, 56});
  const auto y = b.Add(Conv3x3(), {x, b.Weight("w", {128, 64, 3, 3})});
  EXPECT_NEAR(Open("roofline:h100")->CostOf(b.g, y), 18.96, 0.005);
}

TEST(RooflineTest, QkvAndLoraCostWhatTheLectureSays) {
  EXPECT_NEAR(Cost("roofline:h100", Qkv()), 42.3, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", Qkv()), 1044.5, 0.05);
  EXPECT_NEAR(Cost("roofline:h100", Lora()), 39.7, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", Lora()), 4547.6, 0.05);

  Builder merged;
  const auto x = merged.Activation("x", {16, 4096});
  const auto y = merged.Add(ops::MatMul{}, {x, merged.Weight("w", {4096, 3 * 4096})});
  std::vector<graph::NodeId> parts;
  for (int k = 0; k < 3; ++k) {
    parts.push_back(merged.Add(ops::Split{.axis = 1, .parts = 3, .index = k}, {y}));
  }
  const graph::Graph qkv = merged.Done(parts);
  EXPECT_NEAR(Cost("roofline:h100", qkv), 34.2, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", qkv), 1021.9, 0.05);

  Builder folded;
  const auto in = folded.Activation("x", {512, 4096});
  const auto ab =
      folded.Add(ops::MatMul{}, {folded.Weight("a", {4096, 16}), folded.Weight("b", {16, 4096})});
  const auto w = folded.Add(ops::Add{}, {folded.Weight("w", {4096, 4096}), ab});
  const graph::Graph lora = folded.Done({folded.Add(ops::MatMul{}, {in, w})});
  EXPECT_NEAR(Cost("roofline:h100", lora), 21.4, 0.05);
  EXPECT_NEAR(Cost("roofline:weak", lora), 4305.0, 0.05);
}

TEST(RooflineTest, OneOperandReadTwiceIsCountedOnce) {
  Builder b;
  const auto x = b.Activation("x", {1000, 1000}), y = b.Activation("y", {1000, 1000});
  const auto device = Open("roofline:weak");
  const double twice = device->CostOf(b.g, b.Add(ops::Add{}, {x, x}));
  const double both = device->CostOf(b.g, b.Add(ops::Add{}, {x, y}));
  EXPECT_NEAR(twice, 10 + 2 * 2e6 / 100e9 * 1e6, 1e-6);
  EXPECT_NEAR(both, 10 + 3 * 2e6 / 100e9 * 1e6, 1e-6);
}

TEST(RooflineTest, ViewsInputsAndWeightsAreFree) {
  Builder b;
  const auto x = b.Activation("x", {8, 8}), w = b.Weight("w", {8, 8});
  const auto device = Open("roofline:h100");
  EXPECT_EQ(device->CostOf(b.g, x), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Split{}, {x})), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Slice{.axis = 1, .start = 2, .end = 5}, {x})), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Reshape{.shape = {4, 16}}, {x})), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::MatMul{}, {w, w})), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Eye{.size = 8}, {})), 0);
  EXPECT_GT(device->CostOf(b.g, b.Add(ops::Transpose{}, {x})), 4);
}

TEST(RooflineTest, OpaqueNodesCostBytesAndALaunchOfTheirOwn) {
  Builder b;
  const auto x = b.Activation("x", {1000, 1000});
  const auto first = b.Add(ops::Opaque{.key = 7, .output = 0, .shape = {1000, 1000}}, {x});
  const auto second = b.Add(ops::Opaque{.key = 7, .output = 1, .shape = {1000, 1000}}, {x});
  const auto device = Open("roofline:weak");
  EXPECT_NEAR(device->CostOf(b.g, first), 10 + 40, 1e-6);
  EXPECT_NEAR(device->CostOf(b.g, second), 20, 1e-6);
  const GraphCost all = CostOfGraph(*device, b.g, std::vector{first, second});
  EXPECT_EQ(all.opaque, 2);
  EXPECT_EQ(all.nodes, 2);
  EXPECT_NEAR(all.us, 70, 1e-6);
}

TEST(RooflineTest, ExtentsOfRunTimeAreCountedAndCostTheLeast) {
  Builder b;
  graph::TensorType type = Floats({1000});
  type.shape.push_back(base::Poly::Var(b.g.symbols().Add("batch", base::SymbolKind::kDim)));
  const auto x = b.g.AddInput("x", graph::InputKind::kActivation, type);
  const auto y = b.Add(ops::Relu{}, {x});
  const GraphCost cost = CostOfGraph(*Open("roofline:weak"), b.g, std::vector{y});
  EXPECT_EQ(cost.unknown_size, 1);
  EXPECT_NEAR(cost.us, 10 + 0.04, 1e-6);
}

TEST(LowerBoundTest, IsWhatOpaqueOutputsPinDown) {
  Builder b;
  const auto x = b.Activation("x", {1000, 1000});
  const auto inner = b.Add(ops::Opaque{.key = 1, .output = 0, .shape = {1000, 1000}}, {x});
  const auto outer = b.Add(ops::Opaque{.key = 2, .output = 0, .shape = {1000, 1000}}, {inner});
  const auto relu = b.Add(ops::Relu{}, {outer});
  const auto device = Open("roofline:weak");
  EXPECT_NEAR(LowerBound(*device, b.g, std::vector{outer, relu}), 100, 1e-6);
  EXPECT_EQ(LowerBound(*device, b.g, std::vector{relu}), 0);
}

TEST(OpenDeviceTest, UnknownSpecsSayWhatThereIs) {
  for (const char* spec : {"", "cpus", "cpu:", "cpu:hot", "roofline:", "h100"}) {
    const auto device = OpenDevice(spec);
    ASSERT_FALSE(device.ok()) << spec;
    EXPECT_THAT(base::Message(device.status()), HasSubstr("roofline:h100")) << spec;
  }
  const auto missing = OpenDevice("roofline:no/such/file");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::Message(missing.status()), HasSubstr("no/such/file"));
}

TEST(OpenDeviceTest, TheCpuTakesThreadsAndTheStateOfItsCaches) {
  for (const char* spec : {"cpu:threads=0", "cpu:threads=", "cpu:threads=2x", "cpu:threads=99999",
                           "cpu:cache=hot", "cpu:threads=1,"}) {
    EXPECT_EQ(OpenDevice(spec).status().code(), absl::StatusCode::kInvalidArgument) << spec;
  }
  const auto device = OpenDevice("cpu:threads=2,cache=cold");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->name(), "cpu:threads=2,cache=cold");
  EXPECT_THAT((*device)->description(), HasSubstr("threads=2"));
  EXPECT_THAT((*device)->description(), HasSubstr("cold caches"));
  EXPECT_TRUE(IsMeasured("cpu:threads=2"));
  EXPECT_FALSE(IsMeasured("roofline:h100"));
}

TEST(OpenDeviceTest, AFileWithSeveralDevicesNeedsAName) {
  const std::string path = ::testing::TempDir() + "/devices.txt";
  std::ofstream(path) << "device one\n peak_flops 1e9\n bandwidth 1e9\n launch_us 5\n"
                      << "device two\n peak_flops 1e9\n bandwidth 1e9\n element_bytes 4\n";
  EXPECT_THAT(base::Message(OpenDevice("roofline:" + path).status()), HasSubstr("one, two"));
  EXPECT_THAT(base::Message(OpenDevice("roofline:" + path + "#three").status()),
              HasSubstr("one, two"));
  const auto two = OpenDevice("roofline:" + path + "#two");
  ASSERT_TRUE(two.ok());
  Builder b;
  const auto y = b.Add(ops::Neg{}, {b.Activation("x", {1000})});
  EXPECT_NEAR((*two)->CostOf(b.g, y), 8, 1e-9);
  EXPECT_EQ((*two)->name(), "roofline:" + path + "#two");
  std::remove(path.c_str());
}

TEST(ParseDevicesTest, EveryMistakeNamesItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no device"},
      {"# only a comment\n", "no device"},
      {"peak_flops 1\n", "f:1: expected: device NAME"},
      {"device a\n peak_flops x\n", "f:2: 'x' is not a number"},
      {"device a\n peak_flops -1\n", "f:2: '-1' is not a number"},
      {"device a\n peak_flops inf\n", "f:2: 'inf' is not a number"},
      {"device a\n peak_flops\n", "f:2: 'peak_flops' needs a value"},
      {"device a\n peak_flops 1 2\n", "f:2: more than one value"},
      {"device a\n color 1\n", "f:2: unknown field 'color'"},
      {"device a\n peak_flops 1\n", "device 'a' needs"},
      {"device a\n peak_flops 1\n bandwidth 1\ndevice a\n", "f:4: device 'a' is defined twice"},
  };
  for (const auto& [text, error] : cases) {
    const auto devices = ParseDevices(text, "f");
    ASSERT_FALSE(devices.ok()) << text;
    EXPECT_EQ(devices.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(base::Message(devices.status()), HasSubstr(error)) << text;
  }
}

}  // namespace
}  // namespace tenon::optimizer
