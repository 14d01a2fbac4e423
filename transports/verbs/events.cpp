// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/events.h"

#include "base/log.h"
#include "base/text.h"

namespace weft::verbs {
namespace {

// False: an event that ends nothing.
bool understand(const Library& verbs, const Device& device, const ibv_async_event& event,
                DeviceEvent* out) {
  *out = {};
  const char* const what = verbs.event_type_str(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      out->port = static_cast<std::uint32_t>(event.element.port_num);
      out->what = text("port ", device.name(), ':', out->port, " went down");
      return true;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      out->what = text("device ", device.name(), " failed: ", what);
      return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      out->connection = static_cast<const Connection*>(event.element.qp->qp_context);
      out->what =
          text("queue pair ", event.element.qp->qp_num, " of ", device.name(), " failed: ", what);
      return true;
    default:
      logDebug("verbs: ", device.name(), ": ", what);
      return false;
  }
}

}  // namespace

bool nextEvent(const Device& device, DeviceEvent* out) {
  const Library& verbs = device.verbs();
  ibv_async_event event{};
  while (verbs.get_async_event(device.context(), &event) == 0) {
    const bool matters = understand(verbs, device, event, out);
    verbs.ack_async_event(&event);  // last: until then its queue pair cannot go
    if (matters) return true;
  }
  return false;
}

}  // namespace weft::verbs
