// SPDX-License-Identifier: MIT
// Parts of the JSON output that the page has, too. One thread.
#ifndef CS_FORMATS_JSON_H
#define CS_FORMATS_JSON_H

#include "profile/profile.h"

// "facts":{...}
void cs_put_json_facts(const struct cs_facts *f, FILE *out);
// ,"kinds":[...],"strings":[...],"frames":[...],"threads":[...]
void cs_put_json_tables(const struct cs_profile *p, FILE *out);
// "marks":[...]: what is on the timeline of every mode.
void cs_put_json_marks(const struct cs_profile_set *set, FILE *out);

#endif
