// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "plan/candidate.h"
#include "plan/tuning.h"
#include "schedule/ir.h"
#include "tune/expectation.h"

namespace weft::plan {

// A way to run the call, and what the model thinks of it.
struct Estimate {
  std::string name;  // as it may be forced
  double ns = 0;
  bool onlyShared = false;  // only where all buffers are of weftMemAlloc
};

// A form of a call that may be as quick as what the model chooses, which calls themselves find out.
struct Form {
  // What runs where not all buffers are shared, or all are memory that they share anyway.
  Candidate any;
  // Where only some memory is: what runs where they all are, which it asks for. None: it does not ask.
  Candidate shared;
  // Where the model stores results past the caches, it does not, and so on.
  bool flipsStores = false;
  bool asks() const { return shared.algorithm != nullptr; }
  friend bool operator==(const Form&, const Form&) = default;
};

// What calls of a kind are to try, the model's choice first; empty: nothing is near it.
struct Forms {
  std::vector<Form> any;     // while buffers are not all shared, as far as is known
  std::vector<Form> shared;  // while they are, of which calls know that ask
  // What one call in Asking::kSeldom asks for where the form in use does not ask, so that it is noticed
  // that buffers are shared by now, or no longer. None: to ask costs more than it may gain.
  Candidate asked;
  double anyNs = 0, sharedNs = 0;  // what the model's choice of each takes
  const std::vector<Form>& of(bool areShared) const { return areShared ? shared : any; }
};

// How a call runs.
struct Decision {
  schedule::Schedule schedule;  // unless `shared` runs
  bool copies = false;          // of the family on shared buffers: by CMA copies of what is not
  // Where all ranks' buffers are shared, if the call gains by that. Sums have the same bits as
  // those of the other automatic algorithms on one host.
  std::optional<schedule::Schedule> shared;
  tune::Expected expected;          // of calls inside one host, on cores of their own
  tune::Expected expectedShared;    // of those that run, or ask for, `shared`
  std::string_view why;             // what decides: the call, a knob or the model
  std::vector<Estimate> estimates;  // of all that may be chosen, and of what is forced
  bool flipsStores = false;
  Forms forms;

  // Can `schedule` ever run?
  bool needsSchedule(const Tuning& tuning) const { return !shared || !tuning.sharesAll; }
};

// A pure function, so that all ranks decide alike: what the call or a knob asks for, else what the
// model finds cheapest, or `tried`, one of the forms of such a decision. InvalidUsage if what is
// asked for cannot be had (forced.h).
Status decide(const Call& call, const Tuning& tuning, Decision* out, const Form* tried = nullptr);

// "mesh:direct or shared", and " with other stores" where they are flipped.
std::string nameOf(const Form& form, const Call& call, const Tuning& tuning);

}  // namespace weft::plan
