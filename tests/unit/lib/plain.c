// SPDX-License-Identifier: MIT
// A library with nothing in it; with GO_MARK it has the note of Go's linker.
extern int plain;
int plain = 1;

#ifdef GO_MARK
__asm__(
    ".section .note.go.buildid, \"a\", %note\n"
    ".long 4, 4, 4\n"  // sizes of the name and of the build id; the kind
    ".ascii \"Go\\0\\0id..\"\n"
    ".previous\n");
#endif
