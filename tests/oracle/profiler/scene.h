// SPDX-License-Identifier: MIT
// Scenes: the program under test brings a thread to a place and announces it; a native thread of
// the profiler then does its part, and the program continues. One scene at a time.
#pragma once

#include "stack.h"

struct scene {
  char name[64], argument[256];
  ThreadID target;        // the thread that called oracle_scene_begin
  uint32_t tid;           // its thread id
  struct stack at_begin;  // CoreCLR's own walk of the thread, which the thread takes at that call
};

// Provided by the proof: runs on a native thread that has never been managed, while the target is
// in the scene.
void scene_run(const struct scene *scene);
// Starts the native thread. Called in oracle_setup.
void scene_start(void);
// The number of scenes that have run.
uint32_t scene_count(void);
