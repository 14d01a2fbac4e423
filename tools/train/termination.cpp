// SPDX-License-Identifier: Apache-2.0
#include "tools/train/termination.h"

#include <unistd.h>

#include <csignal>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

volatile std::sig_atomic_t isDeferred = 0, came = 0;

void onSigterm(int) {
  if (isDeferred == 0) _exit(static_cast<int>(Exit::kPeerLost));
  came = 1;
}

void mask(int how) {
  sigset_t sigterm;
  sigemptyset(&sigterm);
  sigaddset(&sigterm, SIGTERM);
  sigprocmask(how, &sigterm, nullptr);
}

}  // namespace

void endWithRetryOnSigterm() {
  struct sigaction action {};
  action.sa_handler = onSigterm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  mask(SIG_UNBLOCK);
}

void holdSigterm() { mask(SIG_BLOCK); }

DeferSigterm::DeferSigterm() { isDeferred = 1; }
DeferSigterm::~DeferSigterm() { isDeferred = 0; }

bool DeferSigterm::hasCome() { return came != 0; }

}  // namespace weft::train
