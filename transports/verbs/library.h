// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "base/status.h"
#include "transports/wire/symbols.h"

namespace weft::verbs {

// libibverbs, opened at run time: weft runs without it. The names are those of the library less
// `ibv_`; posting and polling go through a context's ops, as in the header's inline functions.
struct Library {
  explicit Library(void* handle) : symbol(handle) {}

  wire::Symbols symbol;
  decltype(ibv_get_device_list)* get_device_list = symbol("ibv_get_device_list");
  decltype(ibv_free_device_list)* free_device_list = symbol("ibv_free_device_list");
  decltype(ibv_get_device_name)* get_device_name = symbol("ibv_get_device_name");
  decltype(ibv_open_device)* open_device = symbol("ibv_open_device");
  decltype(ibv_close_device)* close_device = symbol("ibv_close_device");
  decltype(ibv_query_device)* query_device = symbol("ibv_query_device");
  decltype(_ibv_query_gid_table)* query_gid_table = symbol("_ibv_query_gid_table");
  decltype(ibv_alloc_pd)* alloc_pd = symbol("ibv_alloc_pd");
  decltype(ibv_dealloc_pd)* dealloc_pd = symbol("ibv_dealloc_pd");
  decltype(ibv_reg_mr)* reg_mr = symbol("ibv_reg_mr");
  decltype(ibv_dereg_mr)* dereg_mr = symbol("ibv_dereg_mr");
  decltype(ibv_create_comp_channel)* create_comp_channel = symbol("ibv_create_comp_channel");
  decltype(ibv_destroy_comp_channel)* destroy_comp_channel = symbol("ibv_destroy_comp_channel");
  decltype(ibv_get_cq_event)* get_cq_event = symbol("ibv_get_cq_event");
  decltype(ibv_ack_cq_events)* ack_cq_events = symbol("ibv_ack_cq_events");
  decltype(ibv_create_cq)* create_cq = symbol("ibv_create_cq");
  decltype(ibv_destroy_cq)* destroy_cq = symbol("ibv_destroy_cq");
  decltype(ibv_create_qp)* create_qp = symbol("ibv_create_qp");
  decltype(ibv_modify_qp)* modify_qp = symbol("ibv_modify_qp");
  decltype(ibv_destroy_qp)* destroy_qp = symbol("ibv_destroy_qp");
  decltype(ibv_create_ah)* create_ah = symbol("ibv_create_ah");
  decltype(ibv_destroy_ah)* destroy_ah = symbol("ibv_destroy_ah");
  decltype(ibv_get_async_event)* get_async_event = symbol("ibv_get_async_event");
  decltype(ibv_ack_async_event)* ack_async_event = symbol("ibv_ack_async_event");
  decltype(ibv_wc_status_str)* wc_status_str = symbol("ibv_wc_status_str");
  decltype(ibv_event_type_str)* event_type_str = symbol("ibv_event_type_str");

  // The library of this process. An error says what is missing and the fix.
  static Status get(const Library** out);
};

}  // namespace weft::verbs
