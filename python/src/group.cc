// openbnns.distributed on libbnns_mpi. The library is loaded when the first group is made: a wheel holds no MPI.
#include <bnns/bnns_distributed.h>
#include <dlfcn.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "python/src/arrays.h"

namespace openbnns {

namespace {

constexpr auto kWhere = "Group";
constexpr auto kFile = "libbnns_mpi.so.0";

struct Library {
  decltype(BNNSExtGroupCreate)* create = nullptr;
  decltype(BNNSExtGroupFinalize)* finalize = nullptr;
  decltype(BNNSExtGroupRank)* rank = nullptr;
  decltype(BNNSExtGroupSize)* size = nullptr;
  decltype(BNNSExtGroupShards)* shards = nullptr;
  decltype(BNNSExtGroupItems)* items = nullptr;
  decltype(BNNSExtGroupBroadcast)* broadcast = nullptr;
  decltype(BNNSExtGroupAllReduce)* all_reduce = nullptr;
  decltype(BNNSExtGroupReduceStart)* reduce_start = nullptr;
  decltype(BNNSExtGroupReduceWait)* reduce_wait = nullptr;
};
Library mpi;

// The file that holds an address.
std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname ? info.dli_fname : "a file without a name";
}

template <class Function>
void find(void* library, const char* name, Function*& function, std::string& missing) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (!function) missing = std::string(kFile) + " has no " + name;
}

// Loads the library once; the reason where that is not possible, else "". The loader looks in LD_LIBRARY_PATH, beside
// this extension (its RUNPATH), and where the system keeps libraries. Errors and threads belong to libbnns, so both
// must use one copy of it.
std::string load() {
  static void* library = nullptr;
  if (library) return "";
  void* const opened = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char* reason = dlerror();
    return reason ? reason : std::string(kFile) + " cannot be loaded";
  }
  std::string missing;
  find(opened, "BNNSExtGroupCreate", mpi.create, missing);
  find(opened, "BNNSExtGroupFinalize", mpi.finalize, missing);
  find(opened, "BNNSExtGroupRank", mpi.rank, missing);
  find(opened, "BNNSExtGroupSize", mpi.size, missing);
  find(opened, "BNNSExtGroupShards", mpi.shards, missing);
  find(opened, "BNNSExtGroupItems", mpi.items, missing);
  find(opened, "BNNSExtGroupBroadcast", mpi.broadcast, missing);
  find(opened, "BNNSExtGroupAllReduce", mpi.all_reduce, missing);
  find(opened, "BNNSExtGroupReduceStart", mpi.reduce_start, missing);
  find(opened, "BNNSExtGroupReduceWait", mpi.reduce_wait, missing);
  const void* const ours = reinterpret_cast<const void*>(&BNNSExtVersion);
  const void* const theirs = dlsym(opened, "BNNSExtVersion");
  if (missing.empty() && theirs != ours) {
    missing = file_of(reinterpret_cast<const void*>(mpi.create)) + " uses " +
              (theirs ? file_of(theirs) : "no libbnns") + ", expected the libbnns of this package, " + file_of(ours);
  }
  if (missing.empty()) {
    library = opened;
  } else {
    dlclose(opened);
  }
  return missing;
}

using Objects = std::vector<nb::object>;

// Arrays of a call, described; they keep their memory.
struct Described {
  Described(const Objects& objects, const char* label) {
    for (const nb::object& o : objects) {
      Array made;
      arrays.push_back(output_of(o, made, kWhere, label));
      descs.push_back(describe(arrays.back(), Role::vector, kWhere, label));
    }
    for (Desc& d : descs) pointers.push_back(&d);
  }
  std::vector<Array> arrays;
  std::vector<Desc> descs;
  std::vector<Desc*> pointers;
};

class Group {
 public:
  Group(std::uint32_t mode, nb::handle wire, std::size_t shards, double timeout) {
    if (const std::string reason = load(); !reason.empty()) refuse(kWhere, reason);
    const BNNSExtGroupParameters parameters{static_cast<BNNSExtGroupMode>(mode), data_type(wire), shards, timeout};
    unlocked(kWhere, [&] {
      handle_ = mpi.create(nullptr, &parameters);
      return handle_ ? 0 : -1;
    });
  }
  Group(const Group&) = delete;
  // Leaves without a word: a group ends by finalize() alone, so that an error does not wait for other ranks.
  ~Group() = default;

  std::size_t rank() const { return mpi.rank(live()); }
  std::size_t size() const { return mpi.size(live()); }
  std::size_t shards() const { return mpi.shards(live()); }
  std::pair<std::size_t, std::size_t> items(std::size_t batch, std::size_t shard) const {
    std::size_t first = 0, count = 0;
    check(mpi.items(live(), batch, shard, &first, &count), kWhere);
    return {first, count};
  }
  void broadcast(const Objects& arrays, std::size_t root) {
    const Described list(arrays, "arrays");
    call([&](BNNSExtGroup g) { return mpi.broadcast(g, root, list.pointers.size(), list.pointers.data()); });
  }
  void all_reduce(const Objects& arrays, std::uint32_t reduction) {
    const Described list(arrays, "arrays");
    call([&](BNNSExtGroup g) {
      return mpi.all_reduce(g, static_cast<BNNSExtGroupReduction>(reduction), list.pointers.size(),
                            list.pointers.data());
    });
  }
  // The results are written over the arrays by reduce_wait(), so their memory is kept until then.
  void reduce_start(std::size_t shard, const Objects& arrays, std::uint32_t reduction) {
    const Described list(arrays, "arrays");
    call([&](BNNSExtGroup g) {
      return mpi.reduce_start(g, static_cast<BNNSExtGroupReduction>(reduction), shard, list.pointers.size(),
                              list.pointers.data());
    });
    if (shard == 0) written_.insert(written_.end(), list.arrays.begin(), list.arrays.end());
  }
  void reduce_wait() {
    call([](BNNSExtGroup g) { return mpi.reduce_wait(g); });
    written_.clear();
  }
  void finalize() {
    call([&](BNNSExtGroup g) {
      handle_ = nullptr;
      return mpi.finalize(g);
    });
  }

 private:
  BNNSExtGroup live() const {
    if (!handle_) refuse(kWhere, "the group has ended");
    if (busy_) refuse(kWhere, "another thread is in a call of this group, expected one at a time");
    return handle_;
  }
  template <class Call>
  void call(Call&& body) {
    const BNNSExtGroup group = live();
    struct Busy {
      explicit Busy(bool& flag) : flag(flag) { flag = true; }
      ~Busy() { flag = false; }
      bool& flag;
    } busy(busy_);
    unlocked(kWhere, [&] { return body(group); });
  }

  BNNSExtGroup handle_ = nullptr;
  bool busy_ = false;
  std::vector<Array> written_;
};

}  // namespace

void bind_group(nb::module_& m) {
  m.def("load_mpi", &load, "Loads libbnns_mpi: the reason why that is not possible, or an empty text.");
  nb::class_<Group>(m, "Group", "BNNSExtGroup; openbnns.distributed.Group is on top of it.")
      .def(nb::init<std::uint32_t, nb::handle, std::size_t, double>(), nb::arg("mode"), nb::arg("wire"),
           nb::arg("shards"), nb::arg("timeout"))
      .def_prop_ro("rank", &Group::rank)
      .def_prop_ro("size", &Group::size)
      .def_prop_ro("shards", &Group::shards)
      .def("items", &Group::items, nb::arg("batch"), nb::arg("shard"))
      .def("broadcast", &Group::broadcast, nb::arg("arrays"), nb::arg("root"))
      .def("all_reduce", &Group::all_reduce, nb::arg("arrays"), nb::arg("reduction"))
      .def("reduce_start", &Group::reduce_start, nb::arg("shard"), nb::arg("arrays"), nb::arg("reduction"))
      .def("reduce_wait", &Group::reduce_wait)
      .def("finalize", &Group::finalize);
}

}  // namespace openbnns
