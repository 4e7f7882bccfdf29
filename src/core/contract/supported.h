// SPDX-License-Identifier: MIT
// The versions that clrsnap knows: all gates on them refer to this header. docs/new-runtime.md says
// what to check before a number here is raised. The versions of the data contracts stand in
// contract/descriptor.c, beside the fields that are read of each. Signal-safe: yes.
#ifndef CS_CONTRACT_SUPPORTED_H
#define CS_CONTRACT_SUPPORTED_H

enum {
  // .NET's major version. Others are refused. These layouts of it are described by no contract:
  //   ExInfo's words                        signal/capture.c
  //   the words after a method's code header  codemap/method.c
  //   the words after ThreadStore.DeadCount, and g_dacTable   remote/collector.c
  CS_SUPPORTED_RUNTIME = 10,
  // The major version of ReadyToRun images whose debug info remote/il.c decodes.
  CS_SUPPORTED_R2R = 16,  // the first one whose debug info is packed so
  // UNWIND_INFO's version (unwind/managed.c). Version 2 comes with APX.
  CS_SUPPORTED_UNWIND_INFO = 1,
};

#endif
