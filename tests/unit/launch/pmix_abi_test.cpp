// SPDX-License-Identifier: Apache-2.0
// Compares pmix_abi.h with the real headers wherever those are installed; compiles to nothing.
#include "launch/pmix_abi.h"

#if __has_include(<pmix.h>)
#include <pmix.h>

#include <string_view>

namespace weft::launch::pmix {

static_assert(kSuccess == PMIX_SUCCESS && kOperationSucceeded == PMIX_OPERATION_SUCCEEDED);
static_assert(kGlobal == PMIX_GLOBAL);
static_assert(kBool == PMIX_BOOL && kString == PMIX_STRING);
static_assert(kUint16 == PMIX_UINT16 && kUint32 == PMIX_UINT32);
static_assert(kRankWildcard == PMIX_RANK_WILDCARD);
static_assert(std::string_view(kJobSize) == PMIX_JOB_SIZE);
static_assert(std::string_view(kLocalRank) == PMIX_LOCAL_RANK);
static_assert(std::string_view(kLocalSize) == PMIX_LOCAL_SIZE);
static_assert(std::string_view(kCollectData) == PMIX_COLLECT_DATA);

static_assert(sizeof(Scope) == sizeof(pmix_scope_t) &&
              sizeof(DataType) == sizeof(pmix_data_type_t));
static_assert(sizeof(Process) == sizeof(pmix_proc_t));
static_assert(offsetof(Process, rank) == offsetof(pmix_proc_t, rank));
static_assert(sizeof(Value) == sizeof(pmix_value_t));
static_assert(offsetof(Value, data) == offsetof(pmix_value_t, data));
static_assert(sizeof(Info) == sizeof(pmix_info_t));
static_assert(offsetof(Info, flags) == offsetof(pmix_info_t, flags));
static_assert(offsetof(Info, value) == offsetof(pmix_info_t, value));

}  // namespace weft::launch::pmix
#endif
