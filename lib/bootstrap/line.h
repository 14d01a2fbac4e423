// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/hub_messages.h"
#include "net/stream.h"

namespace weft::bootstrap {

// What a rank talks to its root over: a connection of its own, or that to the hub of its host
// (host_hub.h). Tells which of them is to blame for silence. Empty once closed.
class Line {
 public:
  Line() = default;
  static Line direct(std::unique_ptr<net::Stream> stream, int rank, std::string rootName);
  // A hub that says nothing for so long is asked whether it lives, and given as long to answer.
  static Line throughHub(std::unique_ptr<net::Stream> stream, int rank,
                         std::chrono::milliseconds silence);

  explicit operator bool() const { return stream_ != nullptr; }
  // Sends one message and waits for the answer of that type, or the error in place of it.
  Status ask(net::MessageType type, net::Bytes body, net::MessageType answerType, Deadline deadline,
             net::Bytes* answer);
  // Of the first one, before all have met: did it fail because the hub hung up, or has said nothing
  // while half of the time went by? Then the root may still be asked, over another line, which
  // takes the place of this one once that has been answered: a root that hears both does not take
  // the end of this one for the rank's.
  bool lostItsHub() const { return lostHub_; }
  // The other end has hung up.
  bool isCut() const { return cut_; }
  // Is it known whose hub it is? It says so to a rank that it tells the root of.
  bool namesItsHub() const { return hub_.who.rank >= 0; }
  // It may be slow and not dead: then waitOn() asks nothing, and waits as ask() does, for this hub
  // alone.
  bool hubIsSilent() const { return silentHub_; }
  Status waitOn(net::MessageType answerType, Deadline deadline, net::Bytes* answer);
  // The error, if one has come.
  Status heard();
  // Heard or not: nobody waits for an answer.
  void say(net::MessageType type, net::Bytes body);

 private:
  Line(std::unique_ptr<net::Stream> stream, int rank, std::string rootName,
       std::chrono::milliseconds silence);
  bool throughHub() const { return silence_.count() != 0; }
  Deadline silenceUntil(Deadline deadline) const;
  Status hear(net::MessageType answerType, Deadline deadline, net::Bytes* answer);
  Status await(Deadline deadline, net::Message* message);
  Status read(const Status& received, const net::Message& message, net::MessageType expected) const;

  std::unique_ptr<net::Stream> stream_;
  int rank_ = -1;
  std::chrono::milliseconds silence_{0};  // of a hub; 0 without one
  HubName hub_;                           // what is known of it, and the root
  bool met_ = false;                      // the first answer has come
  bool isLast_ = false;                   // of the ways to the root
  bool silentHub_ = false;
  bool lostHub_ = false;
  bool cut_ = false;
};

}  // namespace weft::bootstrap
