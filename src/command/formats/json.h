// SPDX-License-Identifier: MIT
// What the JSON output and the page's data share: members of an open object. One thread.
#pragma once

#include "profile/diff.h"
#include "util/json.h"

// "facts":{...}
void cs_put_json_facts(struct cs_json_writer *j, const struct cs_facts *f);
// "kinds":[...],"strings":[...],"frames":[...],"threads":[...]
void cs_put_json_tables(struct cs_json_writer *j, const struct cs_profile *p);
// "marks":[...]: events on the timeline of every mode.
void cs_put_json_marks(struct cs_json_writer *j, const struct cs_profile_set *set);
// `name`:[...]: the lines of `text`, which is changed, without the first `skip` bytes of each.
void cs_put_json_lines(struct cs_json_writer *j, const char *name, char *text, size_t skip);
// "normalize":...,"scale":{...},"reasons":[...]
void cs_put_json_scale(struct cs_json_writer *j, const struct cs_diff *d);
// "only":"before" or "after", of a mode that only one of two recordings has.
void cs_put_json_only(struct cs_json_writer *j, const struct cs_profile *p);
