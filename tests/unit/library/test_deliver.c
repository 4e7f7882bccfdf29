// SPDX-License-Identifier: MIT
// The callbacks of a held walk end when its hold's time is up, also if the target has not run
// since: on a busy machine it ends its hold later than it should.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "snapshot/deliver.h"

static HRESULT count(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                     BYTE context[], void *data) {
  (void)function, (void)ip, (void)info, (void)size, (void)context;
  ++*(unsigned *)data;
  return S_OK;
}

static void set_end(struct cs_request *request, uint64_t ns) {
  request->hold_until[0] = (int64_t)(ns / 1000000000u);
  request->hold_until[1] = (int64_t)(ns % 1000000000u);
}

static void callbacks_end_with_the_hold(void **state) {
  (void)state;
  struct cs_record records[3];
  struct cs_capture capture = {.records = records, .count = 3, .stop = CS_STOP_BASE};
  struct cs_request request = {.word = CS_REQUEST_WORD(7, CS_REQUEST_HELD)};
  unsigned calls = 0;
  struct cs_delivery to = {.callback = count, .data = &calls, .held = &request};
  for (unsigned i = 0; i < capture.count; i++)
    records[i] = (struct cs_record){.kind = CS_CODE_JIT, .resolved = true, .function_id = 8};
  set_end(&request, cs_clock_now_ns() + 3600 * 1000000000ull);
  assert_int_equal(cs_deliver(&capture, &to, NULL), S_OK);
  assert_int_equal(calls, capture.count);
  set_end(&request, cs_clock_now_ns());
  assert_int_equal(cs_deliver(&capture, &to, NULL), CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_int_equal(calls, capture.count);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(callbacks_end_with_the_hold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
