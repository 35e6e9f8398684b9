// What surrounds the nodes of an ONNX file, in and out: names, defaults, subgraphs, types, headers,
// external data; and files that are no models.
#include <gmock/gmock.h>

#include <random>

#include "optimizer/fold/fold.h"
#include "optimizer/fold/simplify.h"
#include "tests/optimizer/onnx_support.h"

namespace tenon::optimizer {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

// The models of onnx_models.py, and a folder to write to.
class StructureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TempFolder;
    test::RunScript("optimizer/onnx_models.py", {folder_->path(), "structure"});
  }
  static void TearDownTestSuite() { delete folder_; }

  static fs::path Folder() { return fs::path(folder_->path()) / "structure"; }
  static std::string Path(const std::string& name) { return Folder() / (name + ".onnx"); }
  static std::string Out(const std::string& name) { return *folder_ / (name + ".out.onnx"); }
  static Model Load(const std::string& name) {
    auto model = Import(Path(name));
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  // What ONNX's own library reads in a file: `expression` over the model m, printed.
  static std::string Ask(const std::string& path, const std::string& expression) {
    const auto run = testing::Run({"/usr/bin/python3", "-c",
                                   "import onnx, sys\nm = onnx.load(sys.argv[1])\n"
                                   "onnx.checker.check_model(m)\n"
                                   "print((" +
                                       expression + "))\n",
                                   path});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }
  static Model Simplified(const Model& model) {
    Model out = model;
    auto g = Simplify(model.graph());
    EXPECT_TRUE(g.ok()) << g.status();
    EXPECT_TRUE(out.SetGraph(*std::move(g)).ok());
    return out;
  }

  static testing::TempFolder* folder_;
};
testing::TempFolder* StructureTest::folder_ = nullptr;

TEST_F(StructureTest, EveryModelGoesInAndOut) {
  int tried = 0;
  for (const fs::path& path : test::ModelsIn(Folder())) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_TRUE(test::RoundTrip(*model, Out("any")).ok()) << path;
    Model folded = Simplified(*model);
    ASSERT_TRUE(FoldWeights(folded).ok());
    EXPECT_TRUE(test::RoundTrip(folded, Out("any")).ok()) << path;
    ++tried;
  }
  EXPECT_GE(tried, 25);
}

TEST_F(StructureTest, NothingUnderstoodIsWrittenAsItWas) {
  for (const fs::path& path : test::ModelsIn(Folder())) {
    const auto model = Import(path, {.understand = false});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->understood_node_count(), 0);
    const auto written = Export(*model, Out("any"));
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(written->kept_nodes, written->nodes) << path;
    const auto again = Import(Out("any"), {.understand = false});
    ASSERT_TRUE(again.ok()) << again.status();
    const auto same = Compare(*model, *again);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(same->max_relative_error, 0) << path << ": " << same->worst;
  }
}

// q = Relu(Relu(x)) is captured under the name h; simplified, h is r and q is gone.
TEST_F(StructureTest, CapturedNamesFollowTheirValues) {
  const Model model = Simplified(Load("captures"));
  ASSERT_TRUE(test::RoundTrip(model, Out("captures")).ok());
  EXPECT_EQ(Ask(Out("captures"),
                "[n.op_type for n in m.graph.node], "
                "[list(a.g.node[0].input) for a in m.graph.node[-1].attribute]"),
            "(['Relu', 'If'], [['r', 'w'], ['r', 'w']])\n");
}

TEST_F(StructureTest, AnInitializerThatIsAnInputIsNoWeight) {
  Model model = Load("override");
  ASSERT_EQ(model.graph().inputs().size(), 2u);
  EXPECT_EQ(model.graph().input(1).kind, graph::InputKind::kActivation);
  ASSERT_TRUE(Export(model, Out("override")).ok());
  EXPECT_EQ(Ask(Out("override"), "len(m.graph.initializer), len(m.graph.input)"), "(1, 2)\n");
}

TEST_F(StructureTest, OldFilesKeepTheirWeightsAmongTheInputs) {
  Model model = Load("ir3");
  const auto folded = FoldWeights(model);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->folded, 1);
  ASSERT_TRUE(test::RoundTrip(model, Out("ir3")).ok());
  EXPECT_EQ(Ask(Out("ir3"), "sorted(v.name for v in m.graph.input)"),
            "['scale', 'scale_folded', 'x']\n");
}

TEST_F(StructureTest, OutputsKeepTheirNamesWhateverTheyAre) {
  for (const char* name :
       {"input_is_output", "identity_outputs", "equal_outputs", "weight_is_output"}) {
    const Model model = Simplified(Load(name));
    const auto again = test::RoundTrip(model, Out(name));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->output_names(), model.output_names());
  }
}

TEST_F(StructureTest, EqualNodesAreOneAndTheSecondOutputIsItsIdentity) {
  ASSERT_TRUE(Export(Load("equal_outputs"), Out("equal_outputs")).ok());
  EXPECT_EQ(Ask(Out("equal_outputs"), "sorted(n.op_type for n in m.graph.node)"),
            "['Add', 'Identity', 'Relu']\n");
}

TEST_F(StructureTest, ConstantNodesAreWeights) {
  const Model model = Load("constant_nodes");
  const auto s = model.WeightValue("s"), v = model.WeightValue("v");
  ASSERT_TRUE(s.ok() && v.ok());
  EXPECT_EQ(s->data, std::vector<double>{2});
  EXPECT_EQ(v->data, (std::vector<double>{1, 2, 3}));
  ASSERT_TRUE(Export(model, Out("constant_nodes")).ok());
  EXPECT_EQ(Ask(Out("constant_nodes"),
                "sum(n.op_type == 'Constant' for n in m.graph.node), len(m.graph.initializer)"),
            "(5, 0)\n");
}

TEST_F(StructureTest, MoreOperandsThanAnOperatorTakesAreBundled) {
  const Model model = Load("many_operands");
  ASSERT_TRUE(test::RoundTrip(model, Out("many")).ok());
  EXPECT_EQ(Ask(Out("many"), "list(m.graph.node[1].input)[:2], len(m.graph.node[1].input)"),
            "(['r', 'w0'], 71)\n");
}

TEST_F(StructureTest, NamedSizesAreOneSymbolAndUnknownOnesAreNot) {
  const Model model = Load("dynamic");
  // MatMul, Add, Reshape with 0 and -1, Flatten hold for every batch; the last Add depends on
  // whether N and M are equal.
  EXPECT_EQ(test::OpaqueCount(model.graph()), 1);
  ASSERT_TRUE(test::RoundTrip(model, Out("dynamic")).ok());
  EXPECT_EQ(Ask(Out("dynamic"),
                "[d.dim_param for v in m.graph.input for d in v.type.tensor_type.shape.dim]"),
            "['N', '', 'N', '', 'M', '']\n");
}

TEST_F(StructureTest, WhatHasNoDescriptionIsOpaque) {
  for (const char* name : {"unknown_rank", "high_rank", "empty_tensor", "integers", "random",
                           "custom_domain", "functions", "optional_inputs"}) {
    EXPECT_GE(test::OpaqueCount(Load(name).graph()), 1) << name;
  }
  for (const char* name : {"halves", "doubles", "dynamic", "ir3", "optional_bounds"}) {
    EXPECT_GE(Load(name).understood_node_count(), 3) << name;
  }
}

TEST_F(StructureTest, ForeignNodesAreDescribed) {
  const Model model = Load("custom_domain");
  for (graph::NodeId id = 0; id < graph::NodeId(model.graph().size()); ++id) {
    const graph::Node& n = model.graph().node(id);
    if (n.is_input() || !ops::IsOpaque(*n.op)) continue;
    const Foreign foreign = model.ForeignNode(std::get<ops::Opaque>(*n.op).key);
    EXPECT_EQ(foreign.op_type, "Mystery");
    EXPECT_EQ(foreign.domain, "com.example");
    return;
  }
  FAIL();
}

TEST_F(StructureTest, RandomNodesAreNeverMerged) {
  ASSERT_TRUE(Export(Simplified(Load("random")), Out("random")).ok());
  EXPECT_EQ(Ask(Out("random"), "[n.op_type for n in m.graph.node]"),
            "['Dropout', 'RandomNormalLike', 'RandomNormalLike', 'Add']\n");
}

TEST_F(StructureTest, OtherOpsetsAreCarriedWithANote) {
  for (const auto& [name, word] : {std::pair("newer_opset", "newer"), {"older_opset", "older"}}) {
    const Model model = Load(name);
    EXPECT_EQ(model.understood_node_count(), 0);
    EXPECT_THAT(model.notes(), Contains(HasSubstr(word)));
  }
}

TEST_F(StructureTest, StaleShapesAreReportedAndDropped) {
  const Model model = Load("stale_shapes");
  EXPECT_THAT(model.notes(), Contains(HasSubstr("differ in dimension")));
  ASSERT_TRUE(Export(model, Out("stale")).ok());
  EXPECT_EQ(Ask(Out("stale"), "len(m.graph.value_info)"), "0\n");
}

TEST_F(StructureTest, HeadersAreKept) {
  ASSERT_TRUE(Export(Load("header"), Out("header")).ok());
  EXPECT_EQ(Ask(Out("header"),
                "m.producer_name, m.producer_version, m.domain, m.model_version, m.doc_string, "
                "m.ir_version, m.metadata_props[0].value, m.graph.doc_string, "
                "m.graph.node[0].doc_string, [v.name for v in m.graph.value_info], "
                "m.graph.quantization_annotation[0].tensor_name, "
                "sorted(t.name for t in m.graph.initializer)"),
            "('a test', '1.2', 'org.example', 42, 'a model', 7, 'nobody', 'a graph', 'why', ['r'], "
            "'r', ['unused', 'w'])\n");
}

TEST_F(StructureTest, FunctionsAreKept) {
  ASSERT_TRUE(Export(Load("functions"), Out("functions")).ok());
  EXPECT_EQ(Ask(Out("functions"), "m.functions[0].name, m.graph.node[1].domain"),
            "('Twice', 'local')\n");
}

TEST_F(StructureTest, ExternalDataBesideTheModelIsReferredTo) {
  const Model model = Load("external");
  const std::string out = Folder() / "external_copy.onnx";
  const auto written = Export(model, out);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->files, std::vector<std::string>{out});
  EXPECT_EQ(Ask(out,
                "[dict((e.key, e.value) for e in t.external_data)['location'] for t in "
                "onnx.load(sys.argv[1], load_external_data=False).graph.initializer]"),
            "['external.bin', 'external.bin']\n");
  fs::remove(out);
}

TEST_F(StructureTest, ExternalDataGoesAlongToAnotherFolder) {
  testing::TempFolder elsewhere;
  Model model = Load("external");
  const auto folded = FoldWeights(model);
  ASSERT_TRUE(folded.ok()) << folded.status();
  const std::string out = elsewhere / "moved.onnx";
  ASSERT_TRUE(test::RoundTrip(model, out).ok());
  EXPECT_EQ(elsewhere.Names(), (std::vector<std::string>{"moved.onnx", "moved.onnx.data"}));
  // The folded weight is inline, the old one v*v was made from is not copied.
  EXPECT_EQ(fs::file_size(out + ".data"), 3u * 64 * 4);
  // Again onto itself: nothing but the same.
  const auto again = Import(out);
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(test::RoundTrip(*again, out).ok());
}

TEST_F(StructureTest, NewWeightsGoToTheDataFileWhenTheModelIsLarge) {
  testing::TempFolder elsewhere;
  Model model = Load("external");
  const eval::Tensor<double> ones{{32, 64}, std::vector<double>(32 * 64, 1)};
  const std::string name = model.AddWeight("ones", graph::DataType::kFloat, ones);
  graph::Graph g = model.graph();
  const auto w = g.AddInput(name, graph::InputKind::kWeight,
                            {graph::DataType::kFloat, graph::ToShape(ones.extents)});
  const auto sum = g.Add(ops::ReduceMean{.axis = 0, .keepdims = 0}, {w});
  const auto y = g.Add(ops::Mul{}, {g.outputs()[0], *sum});
  g.SetOutputs({*y});
  ASSERT_TRUE(model.SetGraph(g).ok());
  const std::string out = elsewhere / "large.onnx";
  ASSERT_TRUE(Export(model, out, {.inline_bytes_max = 100}).ok());
  EXPECT_LT(fs::file_size(out), 4000u);
  const auto again = Import(out);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto same = Compare(model, *again);
  ASSERT_TRUE(same.ok());
  EXPECT_LE(same->max_relative_error, 1e-12);
}

TEST_F(StructureTest, AGraphOfAnotherModelIsRefused) {
  Model model = Load("ir3");
  const Model other = Load("captures");
  EXPECT_FALSE(model.SetGraph(other.graph()).ok());
  graph::Graph g = model.graph();
  g.SetOutputs({});
  EXPECT_FALSE(model.SetGraph(g).ok());
  g = model.graph();
  const auto stranger =
      g.AddInput("stranger", graph::InputKind::kWeight, *g.node(g.outputs()[0]).type);
  g.SetOutputs({stranger});
  EXPECT_FALSE(model.SetGraph(g).ok());
}

TEST_F(StructureTest, PlacesThatCannotBeWrittenToAreErrors) {
  const Model model = Load("ir3");
  for (const char* path : {"/nonexistent/folder/out.onnx", "/dev/full", "/"}) {
    const auto written = Export(model, path);
    ASSERT_FALSE(written.ok()) << path;
    EXPECT_THAT(base::Message(written.status()), HasSubstr(path));
    EXPECT_THAT(base::Message(written.status()), Not(HasSubstr("\n")));
  }
}

TEST_F(StructureTest, FailuresLeaveNoFilesBehind) {
  testing::TempFolder elsewhere;
  Model model = Load("external");
  fs::create_directory(elsewhere / "out.onnx.data");  // In the way of the data file.
  EXPECT_FALSE(Export(model, elsewhere / "out.onnx").ok());
  EXPECT_EQ(elsewhere.Names(), std::vector<std::string>{"out.onnx.data"});
}

TEST(BadModelTest, EachIsOneLineThatNamesTheFile) {
  testing::TempFolder folder;
  test::RunScript("e2e/bad_models.py", {folder.path()});
  int bad = 0;
  for (const fs::path& path : test::ModelsIn(folder.path())) {
    const auto model = Import(path);
    const std::string name = path.stem();
    if (name == "good" || name == "unsorted" || name == "unknown_opset") {
      EXPECT_TRUE(model.ok()) << model.status();
      continue;
    }
    ASSERT_FALSE(model.ok()) << path;
    const std::string message = base::Message(model.status());
    EXPECT_THAT(message, HasSubstr(path.string()));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    EXPECT_NE(model.status().code(), absl::StatusCode::kInternal) << message;
    ++bad;
  }
  EXPECT_GE(bad, 18);
  EXPECT_EQ(Import(folder / "nowhere.onnx").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Import(folder.path()).ok());
}

// Two graph outputs of one name were taken in and could not be written: that was an internal error.
TEST(BadModelTest, NamesOfTwoThingsAreRefusedByName) {
  testing::TempFolder folder;
  test::RunScript("e2e/bad_models.py", {folder.path()});
  const std::pair<const char*, const char*> cases[] = {
      {"output_twice", "output 'z' of the graph is declared twice"},
      {"input_twice", "input 'x' of the graph is declared twice"},
      {"input_defined", "node 'product' (MatMul): output 'y' is defined by another node, input"}};
  for (const auto& [name, says] : cases) {
    const auto model = Import(folder / (std::string(name) + ".onnx"));
    ASSERT_FALSE(model.ok()) << name;
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(base::Message(model.status()), HasSubstr(says));
  }
}

// Every prefix, and every byte changed: an error or a model, never a crash.
TEST(BadModelTest, DamagedFilesDoNotCrash) {
  testing::TempFolder folder;
  test::RunScript("e2e/bad_models.py", {folder.path()});
  const std::string whole = testing::ReadFile(folder / "good.onnx");
  int accepted = 0;
  for (std::size_t n = 0; n < 2 * whole.size(); ++n) {
    std::string text = n < whole.size() ? whole.substr(0, n) : whole;
    if (n >= whole.size()) text[n - whole.size()] = char(text[n - whole.size()] ^ (1 << n % 8));
    const auto model = Import(folder.Write("damaged.onnx", text));
    accepted += model.ok() ? 1 : 0;
    if (model.ok()) {
      EXPECT_NE(Export(*model, folder / "out.onnx").status().code(), absl::StatusCode::kInternal);
    }
  }
  EXPECT_GT(accepted, 0);
}

// Models of all kinds with a few bytes changed, most of them still protobufs.
TEST(BadModelTest, DamagedModelsOfAllKindsDoNotCrash) {
  testing::TempFolder folder;
  test::RunScript("optimizer/onnx_models.py", {folder.path(), "structure", "opsets"});
  std::vector<fs::path> paths = test::ModelsIn(folder / "structure");
  for (fs::path& path : test::ModelsIn(folder / "opsets")) paths.push_back(std::move(path));
  std::mt19937 rng(11);
  int accepted = 0;
  for (const fs::path& path : paths) {
    const std::string whole = testing::ReadFile(path);
    for (int trial = 0; trial < 30; ++trial) {
      std::string text = whole;
      for (int k = trial % 3; k >= 0; --k) text[rng() % text.size()] = char(rng());
      const auto model = Import(folder.Write("damaged.onnx", text));
      if (!model.ok()) continue;
      ++accepted;
      const auto written = Export(*model, folder / "out.onnx");
      EXPECT_NE(written.status().code(), absl::StatusCode::kInternal)
          << path << " " << trial << ": " << written.status();
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(ZooTest, NetworksGoInAndOutAgainAndSoDoTheirFoldedForms) {
  testing::TempFolder folder;
  test::RunScript("models/zoo.py", {"--out", folder.path()});
  int tried = 0;
  for (const fs::path& path : test::ModelsIn(folder.path())) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_GE(3 * model->understood_node_count(), 2 * model->file_node_count()) << path;
    const auto again = test::RoundTrip(*model, folder / "out.onnx_");
    ASSERT_TRUE(again.ok()) << path;
    Model folded = *model;
    auto simple = Simplify(model->graph());
    ASSERT_TRUE(simple.ok()) << simple.status();
    ASSERT_TRUE(folded.SetGraph(*std::move(simple)).ok());
    ASSERT_TRUE(FoldWeights(folded).ok());
    const auto same = Compare(*model, folded);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_LE(same->max_relative_error, 1e-6) << path << ": " << same->worst;
    EXPECT_EQ(same->outputs_covered, same->outputs);
    EXPECT_TRUE(test::RoundTrip(folded, folder / "out.onnx_").ok()) << path;
    ++tried;
  }
  EXPECT_GE(tried, 19);
}

// Models on which published optimizers gave wrong results: simplified, folded, written and read,
// they compute what numpy computed.
TEST(KnownBugsTest, ModelsThatOthersGetWrongKeepTheirOutputs) {
  testing::TempFolder folder;
  int tried = 0, understood = 0;
  for (const fs::path& path : test::ModelsIn(TENON_SOURCE_DIR "/tests/models/known_bugs")) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    Model folded = *model;
    auto simple = Simplify(model->graph());
    ASSERT_TRUE(simple.ok()) << simple.status();
    ASSERT_TRUE(folded.SetGraph(*std::move(simple)).ok());
    ASSERT_TRUE(FoldWeights(folded).ok());
    const auto same = Compare(*model, folded);
    ASSERT_TRUE(same.ok()) << path << ": " << same.status();
    EXPECT_LE(same->max_relative_error, 1e-6) << path << ": " << same->worst;
    const auto again = test::RoundTrip(folded, folder / "out.onnx");
    ASSERT_TRUE(again.ok()) << path;
    ++tried;
    if (test::OpaqueCount(again->graph()) > 0) continue;
    const test::Errors errors = test::RunData(*again, path.parent_path() / "test_data_set_0");
    EXPECT_LE(errors.engine, 1e-5) << path;
    ++understood;
  }
  std::cout << tried << " models, " << understood << " of them without opaque nodes\n";
  EXPECT_EQ(tried, 30);
  EXPECT_GE(understood, 8);
}

}  // namespace
}  // namespace tenon::optimizer
