#include "tools/bench/model.h"

#include "kernels/torch_functions.h"
#include "tools/bench/graph.h"
#include "tools/bench/timer.h"

namespace attest::bench {
namespace {

class ModelBench {
 public:
  explicit ModelBench(const ModelBenchPlan& plan)
      : plan_(plan), timer_(timer_of(plan.device)), decoder_(plan.shape, plan.dtype, plan.device, 1) {}

  ModelRow measure(int64_t prompt, int64_t batch) const {
    const at::TensorOptions options = at::TensorOptions(at::kLong).device(torch_device(plan_.device));
    const at::Tensor text = at::randint(plan_.shape.vocabulary, {batch, prompt + 1}, options);
    const at::Tensor last = text.narrow(1, prompt, 1);
    model::Cache cache = decoder_.make_cache(batch, prompt + 1);
    decoder_.prefill(text.narrow(1, 0, prompt), cache);
    const at::Tensor lengths = cache.seqlens.clone();
    ModelRow row{.prompt = prompt, .batch = batch};
    // Each run begins where the prompt ended: one small copy beside the step.
    row.cached = times([&] { cache.seqlens.copy_(lengths), decoder_.step(last, cache); }, plan_.repeats, kCallsInGraph);
    const at::Tensor q = at::randn({batch, plan_.shape.num_heads_q, 1, plan_.shape.head_dim}, cache.k.front().options());
    row.attention = times([&] { cache.seqlens.copy_(lengths), attend(q, cache); }, plan_.repeats, kCallsInGraph);
    row.recomputed = times([&] { decoder_.forward(text, true); }, std::max(3, plan_.repeats / 10), 1);
    return row;
  }

 private:
  StepTimes times(const std::function<void()>& run, int repeats, int calls) const {
    for (int i = 0; i < 2; ++i) run();
    const auto median_of = [&](const std::function<double()>& once) {
      std::vector<double> samples;
      for (int i = 0; i < repeats; ++i) samples.push_back(once());
      return percentile(samples, 0.5);
    };
    StepTimes t{.events = median_of([&] { return timer_.time(run); }), .graph = {}};
    if (plan_.device == Device::kCuda) t.graph = median_of(captured(run, calls));
    return t;
  }

  /// What a step does with its cache, for `q` and rows of the cache's own.
  static void attend(const at::Tensor& q, model::Cache& cache) {
    for (size_t i = 0; i < cache.k.size(); ++i) {
      const at::Tensor k = cache.k[i].narrow(2, 0, 1), v = cache.v[i].narrow(2, 0, 1);
      at::Tensor seqlens = cache.seqlens.select(0, static_cast<int64_t>(i));
      torch_functions::kv_cache_append_(cache.k[i], cache.v[i], seqlens, k, v);
      torch_functions::stickbreaking_decode(q, cache.k[i], cache.v[i], seqlens);
    }
  }

  ModelBenchPlan plan_;
  Timer timer_;
  model::Decoder decoder_;
};

}  // namespace

std::vector<ModelRow> bench_model(const ModelBenchPlan& plan, const std::function<void(const ModelRow&)>& done) {
  const c10::InferenceMode no_gradients;
  const ModelBench bench(plan);
  std::vector<ModelRow> rows;
  for (const int64_t batch : plan.batches)
    for (const int64_t prompt : plan.prompts) done(rows.emplace_back(bench.measure(prompt, batch)));
  return rows;
}

}  // namespace attest::bench
