// SPDX-License-Identifier: MIT
// The names of what events are about (types of objects and exceptions, kinds of pauses), by number,
// so that a sample carries four bytes of a name. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_EVENT_NAME_BYTES = 1024 };  // with the NUL; longer names are cut, with a mark

// ---- Any thread ----
// Return a name's number, from 1 on, the same for the same text and class; or 0 if there is no
// memory. `class`: that of the object that the name is about; 0: not known.
uint32_t cs_event_name_of_utf16(const uint8_t *utf16, size_t bytes, uint64_t class);
uint32_t cs_event_name_of(const char *text);
// Returns the number of the text that begins there and ends with a NUL, if it is the last one that
// the calling thread passed to cs_event_name_of_utf16, with this class; else 0. *bytes: its length
// without the NUL.
uint32_t cs_event_name_again(const uint8_t *utf16, size_t left, uint64_t class, size_t *bytes);
// Counts an event of a name, and returns how many there have been.
uint64_t cs_event_name_count(uint32_t name);
// Returns the number of events of a name that no sample stands for yet, and resets it to 0, for a
// sample that is to stand for them. cs_event_name_return gives them back if that sample was not
// made.
uint64_t cs_event_name_take_unsampled(uint32_t name);
void cs_event_name_return(uint32_t name, uint64_t events);

// ---- The agent's thread ----
void cs_event_name_copy(uint32_t name, char text[CS_EVENT_NAME_BYTES]);
uint32_t cs_event_name_plain(uint32_t name);  // the number of the same text without a class
uint64_t cs_event_names_counted(void);        // by cs_event_name_count, of all names
uint32_t cs_event_names_count(void);          // the highest number
void cs_event_names_free(void);               // when no other thread uses them any more
