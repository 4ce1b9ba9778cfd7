# Threads, processes, caches, lifetime.

fault("BC46", "two calls of a filter work in the same scratch",
      "src/core/memory.cc",
      "void* block = slot.exchange(nullptr, std::memory_order_acquire);",
      "void* block = slot.load(std::memory_order_acquire);",
      "shared_filter_test", "EveryLayer.OneFilterForSixteenThreads")
fault("BC47", "copies of weights belong to the thread that makes the filter",
      "src/filter/parameter.cc",
      "tensor_.data = copy_.data();",
      "thread_local Buffer copies[64];\n  thread_local size_t last = 0;\n  tensor_.data = copy_.data();\n"
      "  (copies[++last % 64] = std::move(copy_));",
      "shared_filter_test", "*.BC47_*")
fault("BC48", "a workspace is taken for large enough whatever the threads",
      "src/ops/matmul/matmul_bnns.cc",
      "if (workspace && bytes + kAlignment <= promised_bytes()) {",
      "if (workspace) {",
      "matmul_test", "*.BC48_*")
fault("BC49", "all calls of a kernel share one buffer",
      "src/ops/dropout/dropout.cc",
      "uint32_t words_buffer[kDropoutBlock + 2 * kDropoutGroup];",
      "static uint32_t words_buffer[kDropoutBlock + 2 * kDropoutGroup];",
      "writable_globals", targets=["bnns"])
fault("BC50", "nobody counts forks: a child takes the parent's workers for its own",
      "src/core/process/fork.cc",
      "[] { generation.fetch_add(1, std::memory_order_relaxed); }",
      "[] {}",
      "parallel_test", "ParallelFor.WorksAfterFork")
fault("BC50", "a child waits for a lock that a thread of the parent holds",
      "src/core/process/fork.cc",
      "const bool abandoned = seen != 0 && (seen & ~kStates) != ours;",
      "const bool abandoned = seen != 0 && (seen & ~kStates) == 0;",
      "fork_test", "ForkMutex.ChildFindsTheParentsLockFreeAndKnowsIt")
fault("BC51", "a call from inside a task waits for the workers",
      "src/core/parallel.cc",
      "bool run(const Job& job, size_t threads) noexcept {\n    if (busy_.exchange(true, std::memory_order_acquire)) return false;",
      "bool run(const Job& job, size_t threads) noexcept {\n    while (busy_.exchange(true, std::memory_order_acquire)) cpu_relax();",
      "parallel_test", "ParallelFor.NestedCallsFinish")
fault("BC52", "the default number of threads is that of all CPUs",
      "src/core/parallel.cc",
      "if (sched_getaffinity(0, sizeof mask, &mask) == 0) count",
      "if (sched_getaffinity(0, sizeof mask, &mask) != 0) count",
      "parallel_test", "DefaultThreads.FollowsAffinityAndCanBeSet")
fault("BC52", "a quota of one and a half CPUs is one CPU",
      "src/core/process/cgroup.cc",
      "const double wanted = (quota + period - 1) / period;",
      "const double wanted = quota / period;",
      "cgroup_test", "CgroupThreads.*")
fault("BC53", "gradients of weights are summed in as many slices as there are threads",
      "src/ops/convolution/gemm/dw.cc",
      "slices_ = weight_slices(blocks(), pixels_.count(), c_floats_, work, kSliceWork);",
      "slices_ = std::min(weight_slices(blocks(), pixels_.count(), c_floats_, work, kSliceWork), std::max<size_t>(p.threads, 1));",
      "same_bits_test", "EveryLayer.SameBits*")
fault("BC54", "workers outlive the library",
      "src/core/parallel.cc",
      "if (existing && existing->is_ours() && existing->stop()) delete existing;",
      "if (existing && !existing->is_ours()) delete existing;",
      "load_unload_test", "LoadUnload.BC54_*")
fault("BC55", "scratch stays when its filter goes",
      "src/core/memory.cc",
      "for (std::atomic<void*>& slot : slots_) release(options_, slot.load(std::memory_order_relaxed));",
      "",
      "growth_test", "Growth.*")
fault("BC56", "an algorithm for dense taps is chosen without a look at the dilation",
      "src/ops/convolution/few/lanes.cc",
      "8 * (width - map.small_channels) <= width && x.tap == 1 && x.taps > 1 &&",
      "8 * (width - map.small_channels) <= width && x.taps > 1 &&",
      "convolution_bug_classes_test", "*.BC56_*")
fault("BC57", "the client's pointer is not used: weights are copied once",
      "src/filter/parameter.cc",
      "if (!tensor.data || options.use_client_pointers) return;",
      "if (!tensor.data) return;",
      "normalization_state_test", "*.BC57_*")
