// SPDX-License-Identifier: Apache-2.0
// How long a watch waits for whom, before it says that something is wrong.
#pragma once

#include <chrono>

namespace weft::watch {

inline constexpr std::chrono::milliseconds kLookEvery{5};  // for dead peers
inline constexpr std::chrono::milliseconds kWordsPatience{
    250};  // for the next call of ranks that come a little later
inline constexpr std::chrono::milliseconds kWordsAtMost{
    2000};  // for all of them: many may share few cores
inline constexpr std::chrono::milliseconds kFirstErrorPatience{
    50};  // for the text of an error that is being written
inline constexpr std::chrono::milliseconds kLeavePatience{
    500};  // for ranks in the midst of a large copy
inline constexpr std::chrono::microseconds kLeaveLook{50};
inline constexpr std::chrono::milliseconds kDeathPatience{
    100};  // from a lost connection to the news of a death
// Remote ranks are asked first after a wait that is longer than most, then more and more seldom.
inline constexpr std::chrono::milliseconds kAskFirst{20};
inline constexpr std::chrono::milliseconds kAskAtMost{500};
inline constexpr std::chrono::milliseconds kAskAgain{5};  // for words that have not come yet
inline constexpr std::chrono::milliseconds kAnswerPatience{
    30};  // for the last look before an error

}  // namespace weft::watch
