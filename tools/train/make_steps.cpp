// SPDX-License-Identifier: Apache-2.0
#include "tools/train/make_steps.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "tools/train/termination.h"

namespace weft::train {
namespace {

using Clock = std::chrono::steady_clock;

class Steps {
 public:
  Steps(const Options& options, Trainer& trainer, PaceMeter& meter, Report* report)
      : options_(options), trainer_(trainer), meter_(meter), report_(report) {}

  Stop make() {
    const bool areMade = areAllMade();  // an evaluation may be left
    while (!areAllMade() && stop_ == Stop::kNo) makeOne();
    take(trainer_.finish());
    if (evaluatesEnd_ && (areMade || stop_ == Stop::kTimeIsUp)) evaluateEnd();
    return stop_;
  }

 private:
  void makeOne() {
    take(trainer_.step([this] { return wantsStop(); }));
    const bool saves = isTurn(options_.saveEvery);
    const bool evaluates = isTurn(options_.evalEvery) || (evaluatesEnd_ && areAllMade());
    if (!saves && !evaluates && !options_.noOverlap) return;
    const std::optional<StepReport> ended = trainer_.finish();
    take(ended, evaluates && ended ? evaluate() : std::nullopt);
    if (saves) trainer_.save(options_.save, false);
  }

  void evaluateEnd() {
    const std::optional<Evaluation> found = evaluate();
    if (found && report_ != nullptr) report_->addEvaluation(trainer_.begun() - 1, *found);
  }

  // Nothing, if SIGTERM has come meanwhile: there is work to save.
  std::optional<Evaluation> evaluate() {
    const auto found = trainer_.evaluate(&DeferSigterm::hasCome);
    if (!found) stop_ = Stop::kTerminated;
    return found;
  }

  void take(const std::optional<StepReport>& ended,
            const std::optional<Evaluation>& evaluation = {}) {
    if (!ended) return;
    stop_ = std::max(stop_, ended->stop);
    meter_.add(*ended);
    if (report_ != nullptr) report_->add(*ended, evaluation);
  }

  Stop wantsStop() const {
    if (DeferSigterm::hasCome()) return Stop::kTerminated;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    return options_.seconds > 0 && elapsed > options_.seconds ? Stop::kTimeIsUp : Stop::kNo;
  }

  bool isTurn(int64_t every) const { return every > 0 && trainer_.begun() % every == 0; }
  bool areAllMade() const { return trainer_.begun() >= options_.steps; }

  const Options& options_;
  Trainer& trainer_;
  PaceMeter& meter_;
  Report* const report_;
  const bool evaluatesEnd_ = options_.classifies && trainer_.validates();
  const Clock::time_point start_ = Clock::now();
  Stop stop_ = Stop::kNo;
};

}  // namespace

Stop makeSteps(const Options& options, Trainer& trainer, PaceMeter& meter, Report* report) {
  return Steps(options, trainer, meter, report).make();
}

}  // namespace weft::train
