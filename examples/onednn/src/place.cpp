// SPDX-License-Identifier: Apache-2.0
//
// One engine for each root device, one stream for each queue.
#include "place.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <mutex>

namespace onednn_ops {

const place& place_of(const sycl::queue& queue) {
  // Never destroyed: at the end of the process the runtime may go first.
  static auto& engines = *new std::map<std::int32_t, dnnl::engine>;
  static auto& places = *new std::list<place>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const place& known : places) {
    if (known.queue == queue) {
      return known;
    }
  }
  const std::int32_t id = usm_dlpack::device_id(queue.get_device());
  auto engine = engines.find(id);
  if (engine == engines.end()) {
    engine = engines.emplace(id, onednn_dlpack::make_engine(id)).first;
  }
  places.push_back({queue, engine->second, onednn_dlpack::make_stream(engine->second, queue)});
  return places.back();
}

}  // namespace onednn_ops
