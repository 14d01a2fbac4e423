/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of this process that can be told to fail: for programs that are linked with failing_calls.c. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum Failing {
  kRefused,     /* with an error that this call is known for, such as EMFILE */
  kInterrupted, /* by a signal (EINTR), or done in part: what may happen to any call at any time */
};

/* The n-th call of weft's from now on fails, whichever thread makes it, and no other; none if n is 0. Only
 * those of this name count, unless it is NULL. */
void failCall(const char* name, long n, enum Failing how);
/* That one and all that follow are refused. */
void failCallsFrom(const char* name, long n);
/* No more of that. The name of the call that has failed, or NULL. */
const char* stopFailingCalls(void);
/* The i-th kind of call that weft has made since failCall(), and how many of it; NULL: so many there are not. */
const char* kindOfCall(int i, long* made);

#ifdef __cplusplus
}
#endif
