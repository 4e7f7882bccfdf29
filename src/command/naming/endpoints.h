// SPDX-License-Identifier: MIT
// The endpoints of labels: "GET /cart/{id}", or the name of an Activity.
#pragma once

#include "recording/recording.h"

// Returns the endpoints' names by the numbers of labels. To be freed; the names are the
// recording's.
const char **cs_endpoints_by_label(const struct cs_recording *rec);
// Returns the HTTP statuses of the labels' requests, 0 where they are unknown. To be freed.
uint16_t *cs_statuses_by_label(const struct cs_recording *rec);
// Returns the names of all endpoints, separated by commas; of very many the first ones. To be
// freed.
char *cs_endpoints_list(const struct cs_recording *rec);
// For the request delegates that ASP.NET Core has compiled for one endpoint each, by the index of a
// function in the recording: the index of the function that names its endpoint, plus one; 0: it is
// no such delegate. To be freed; NULL: no sample has a label.
uint32_t *cs_endpoints_of_functions(const struct cs_recording *rec);
