// SPDX-License-Identifier: Apache-2.0
//
// One engine for each root device, one stream for each queue.
#include "place.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace onednn_ops {
namespace {

// Never destroyed: at the end of the process the runtime may go first.
struct known_places {
  std::mutex mutex;
  std::map<std::int32_t, dnnl::engine> engines;
  std::list<place> places;
  std::list<std::pair<sycl::queue, sycl::queue>> in_order;  ///< and the queue each is made for
};

known_places& known() {
  static auto& all = *new known_places;
  return all;
}

/// @pre the mutex is locked
const place& find_or_make(known_places& all, const sycl::queue& queue) {
  for (const place& found : all.places) {
    if (found.queue == queue) {
      return found;
    }
  }
  const std::int32_t id = usm_dlpack::device_id(queue.get_device());
  auto engine = all.engines.find(id);
  if (engine == all.engines.end()) {
    engine = all.engines.emplace(id, onednn_dlpack::make_engine(id)).first;
  }
  all.places.push_back(
      {queue, engine->second, onednn_dlpack::make_stream(engine->second, queue)});
  return all.places.back();
}

}  // namespace

const place& place_of(const sycl::queue& queue) {
  known_places& all = known();
  const std::lock_guard lock(all.mutex);
  return find_or_make(all, queue);
}

const place& in_order_place_of(const sycl::queue& queue) {
  if (queue.is_in_order()) {
    return place_of(queue);
  }
  known_places& all = known();
  const std::lock_guard lock(all.mutex);
  for (const auto& [made, of] : all.in_order) {
    if (of == queue) {
      return find_or_make(all, made);
    }
  }
  const sycl::queue made(queue.get_context(), queue.get_device(),
                         sycl::property::queue::in_order());
  const place& here = find_or_make(all, made);  // refuses a queue of another context
  all.in_order.emplace_back(made, queue);
  return here;
}

}  // namespace onednn_ops
