// SPDX-License-Identifier: MIT
// A profile's stacks by trace, or by endpoint: below each thread a frame for each of them, with the
// stacks of its samples. For formats that know nothing of labels. One thread.
#pragma once

#include "profile/profile.h"

// What has no label stays where it is; so does what the tree has no room for.
void cs_group_by_trace(struct cs_profile *p);
// Groups by p->endpoints and p->statuses, which must be known (cs_route_name). Samples without an
// endpoint stay where they are. The frames between the thread and the endpoint's delegate are left
// out: which of the server's methods lead there is a matter of chance.
void cs_group_by_endpoint(struct cs_profile *p);

// Writes the route of a label, its endpoint with a status of 400 or more: "GET /cart/{id}",
// "GET /cart/{id} [500]".
void cs_route_name(const struct cs_profile *p, uint32_t label, char *out, size_t size);

// The name of an endpoint's delegate is that of the endpoint after this.
#define CS_ENDPOINT_PREFIX "[endpoint] "
