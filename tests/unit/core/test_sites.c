// SPDX-License-Identifier: MIT
// The cache of call sites: what is found is what was put, for any addresses and rules, even if far
// more are put than there is room for.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "unwind/sites.h"

static struct cs_sites sites;

static uint64_t random_state = 0x1234567;
static uint64_t random_word(void) {
  return cs_random_next(&random_state);
}

// The rule of an address, derived from the address alone.
static struct cs_cfi_rule rule_of(uint64_t ip) {
  uint64_t h = ip * 0x2545F4914F6CDD1Dull;
  struct cs_cfi_rule rule = {.cfa_how = CS_CFA_REG, .cfa_reg = h & 1 ? CS_FP : CS_SP};
  int32_t saved = 1;
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) {
    if (i == CS_CFI_RA || !(h >> (8 + i % 6) & 1)) continue;
    rule.slot[i].how = CS_CFI_AT_CFA;
    rule.slot[i].off = -8 * ++saved;
  }
  rule.cfa_off = 8 * (saved + (int32_t)(h >> 32 & 0x1FFF));
  rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
  rule.slot[CS_CFI_RA].off = -8;
  return rule;
}

static enum cs_code_kind kind_of(uint64_t ip) {
  return (enum cs_code_kind)(1 + ip % 3);
}

static void check(uint64_t ip, cs_site site) {
  struct cs_cfi_rule rule = rule_of(ip);
  const struct cs_site_rule *saved = &sites.rules[CS_SITE_RULE(site)];
  assert_int_equal(CS_SITE_KIND(site), kind_of(ip));
  assert_int_equal(CS_SITE_CFA(site), rule.cfa_off);
  assert_int_equal((site & CS_SITE_BY_FP) != 0, rule.cfa_reg == CS_FP);
  for (unsigned i = 0; i < CS_SITE_SAVED; i++)
    assert_int_equal(saved->saved[i] * 8, rule.slot[i].off);
}

static void put(uint64_t ip) {
  struct cs_cfi_rule rule = rule_of(ip);
  check(ip, cs_sites_add(&sites, ip, &rule, kind_of(ip)));
}

// Dense addresses (one in eight), like the call sites of one library, and others from all of user
// space.
static uint64_t address(unsigned i) {
  uint64_t r = random_word();
  return i % 2 == 0 ? 0x7F1234000000 + r % (1 << 22) * 8 : (r >> (64 - CS_SITE_IP_BITS) & ~7ull);
}

static void finds_what_was_put_and_nothing_else(void **state) {
  (void)state;
  enum { COUNT = 400000 };
  uint64_t *put_ips = calloc(COUNT, sizeof *put_ips);
  unsigned found = 0;
  assert_non_null(put_ips);
  cs_sites_forget(&sites);
  for (unsigned i = 0; i < COUNT; i++) {
    put_ips[i] = address(i);
    put(put_ips[i]);
    check(put_ips[i], cs_sites_find(&sites, put_ips[i]));
  }
  for (unsigned i = 0; i < COUNT; i++) {
    cs_site site = cs_sites_find(&sites, put_ips[i]);
    if (site == 0) continue;
    check(put_ips[i], site);
    found++;
  }
  assert_true(found > CS_SITE_WORDS * 9 / 10);  // the table is full
  // Addresses that were not put, near the others and anywhere: to be found, each would have to be
  // equal to one that was put.
  for (unsigned i = 0; i < COUNT; i++)
    assert_int_equal(cs_sites_find(&sites, (put_ips[i] & ~7ull) + 1 + i % 7), 0);
  free(put_ips);
}

static void a_tenth_of_its_room_loses_nothing(void **state) {
  (void)state;
  enum { COUNT = CS_SITE_WORDS / 10 };
  uint64_t before = random_state;
  cs_sites_forget(&sites);
  for (unsigned i = 0; i < COUNT; i++) put(address(i));
  random_state = before;
  for (unsigned i = 0; i < COUNT; i++) {
    uint64_t ip = address(i);
    check(ip, cs_sites_find(&sites, ip));
  }
}

static void refuse(uint64_t ip, struct cs_cfi_rule rule) {
  assert_int_equal(cs_sites_add(&sites, ip, &rule, CS_CODE_NATIVE), 0);
  assert_int_equal(cs_sites_find(&sites, ip), 0);
}

static void refuses_what_it_cannot_say(void **state) {
  (void)state;
  const struct cs_cfi_rule good = {
      .cfa_how = CS_CFA_REG,
      .cfa_reg = CS_SP,
      .cfa_off = 64,
      .slot = {[0] = {.how = CS_CFI_AT_CFA, .off = -16},
               [CS_CFI_RA] = {.how = CS_CFI_AT_CFA, .off = -8}},
  };
  struct cs_cfi_rule rule;
  cs_sites_forget(&sites);
  rule = good, rule.cfa_how = CS_CFA_DEREF, refuse(1, rule);
  rule = good, rule.cfa_reg = cs_slot_register[0], refuse(2, rule);
  rule = good, rule.cfa_off = 60, refuse(3, rule);
  rule = good, rule.cfa_off = 8 << 14, refuse(4, rule);
  rule = good, rule.signal_frame = 1, refuse(5, rule);
  rule = good, rule.slot[2].how = CS_CFI_IN_REG, refuse(6, rule);
  rule = good, rule.slot[0].off = -12, refuse(7, rule);
  rule = good, rule.slot[0].off = 8, refuse(8, rule);
  rule = good, rule.slot[0].off = -72, refuse(9, rule);  // below the frame's sp
  if (CS_SITE_RA != 0) rule = good, rule.slot[CS_CFI_RA].off = -16, refuse(10, rule);
  assert_int_not_equal(cs_sites_add(&sites, 11, &good, CS_CODE_NATIVE), 0);
  rule = good, rule.slot[CS_CFI_RA].how = CS_CFI_UNDEFINED;
  assert_true(CS_SITE_IS_BASE(cs_sites_add(&sites, 12, &rule, CS_CODE_NATIVE)));
  assert_int_equal(CS_SITE_KIND(cs_sites_find(&sites, 12)), CS_CODE_NATIVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_was_put_and_nothing_else),
      cmocka_unit_test(a_tenth_of_its_room_loses_nothing),
      cmocka_unit_test(refuses_what_it_cannot_say),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
