// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/verbs/gid.h"
#include "transports/verbs/library.h"
#include "transports/wire/device_filter.h"

namespace weft::verbs {

using namespace wire;

enum class PortState : std::uint32_t { Usable, Down, NotEthernet, NoGid };

// A port as its rank tells all others of it.
struct PortInfo {
  char device[64] = {};
  std::uint32_t port = 0;
  PortState state = PortState::Usable;
  std::uint32_t mtu = 0;         // bytes
  std::uint32_t prefixBits = 0;  // of gid's 128; 0: unknown
  std::uint32_t onNetwork = 0;   // its network interface is visible: it can say hello
  Gid gid{};                     // the best RoCE v2 GID by WEFT_ROCE_GID; zero: none
  Gid linkLocal{};               // zero: none

  std::string name() const;  // "rc0p1:1"
};

// An open device. Its asynchronous events are read here and nowhere else.
class Device {
 public:
  Device(const Library& verbs, ibv_context* context);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { verbs_.close_device(context_); }

  const Library& verbs() const { return verbs_; }
  ibv_context* context() const { return context_; }
  const ibv_device_attr& limits() const { return limits_; }
  std::string name() const { return verbs_.get_device_name(context_->device); }

  Status query();
  // The header's inline function, less its link to the library.
  Status queryPort(std::uint32_t port, ibv_port_attr* attributes) const;
  std::vector<ibv_gid_entry> gids() const;

 private:
  const Library& verbs_;
  ibv_context* context_;
  ibv_device_attr limits_{};
};

struct Port {
  std::shared_ptr<Device> device;
  PortInfo info;
  std::uint8_t number = 0;
  std::uint8_t gidIndex = 0;  // of info.gid
  std::uint8_t linkLocalIndex = 0;
  std::uint32_t interface = 0;
  std::size_t maxMessage = 0;

  // How packets get from here to a port of that GID.
  ibv_ah_attr pathTo(const Gid& far, bool linkLocal) const;
};

// All ports that the filter allows, in order of device and number, usable or not. An error if there
// is no device at all, or none that the filter allows.
Status openPorts(const Library& verbs, const DeviceFilter& filter, const GidRule& rule,
                 std::vector<Port>* out);

}  // namespace weft::verbs
