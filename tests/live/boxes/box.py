# SPDX-License-Identifier: MIT
"""box.py [--root DIR] [--user UID:GID] [--cap NAME]... COMMAND...: runs COMMAND as a container engine would: under the
default seccomp profile (that of Debian's package golang-github-containers-common), with docker's default capabilities
and those named, as that user, in that root. What else is contained is up to the caller. Exit 77: no profile here."""
import argparse
import ctypes
import json
import os
import sys

PROFILE = "/usr/share/containers/seccomp.json"
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
                "NET_BIND_SERVICE": 10, "NET_RAW": 13, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "MKNOD": 27,
                "AUDIT_WRITE": 29, "SETFCAP": 31}
NOT_BY_DEFAULT = {"SYS_PTRACE", "SYS_ADMIN"}
PR_CAPBSET_DROP = 24


def default_filter(capabilities):
    held = {"CAP_" + name for name in capabilities}
    with open(PROFILE, encoding="utf-8") as file:
        profile = json.load(file)

    def action(entry, name):
        return seccomp.ERRNO(entry.get("errnoRet", profile.get("defaultErrnoRet", 1))) if name == "SCMP_ACT_ERRNO" else seccomp.ALLOW

    def applies(entry):
        wanted, refused = entry.get("includes") or {}, entry.get("excludes") or {}
        return (set(wanted.get("caps", [])) <= held and "amd64" in wanted.get("arches", ["amd64"])
                and not held & set(refused.get("caps", [])) and "amd64" not in refused.get("arches", []))

    def condition(arg):
        if arg["op"] == "SCMP_CMP_MASKED_EQ":
            return seccomp.Arg(arg["index"], seccomp.MASKED_EQ, arg["value"], arg["valueTwo"])
        return seccomp.Arg(arg["index"], getattr(seccomp, arg["op"].replace("SCMP_CMP_", "")), arg["value"])

    result = seccomp.SyscallFilter(action(profile, profile["defaultAction"]))
    result.set_attr(seccomp.Attr.CTL_NNP, 0)
    for entry in filter(applies, profile["syscalls"]):
        for name in entry["names"]:
            try:
                number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
            except ValueError:
                continue  # of another architecture, or newer than libseccomp
            if number >= 0:
                result.add_rule(action(entry, entry["action"]), name, *map(condition, entry.get("args") or []))
    return result


parser = argparse.ArgumentParser()
parser.add_argument("--root", default="/")
parser.add_argument("--user", default="0:0")
parser.add_argument("--cap", action="append", default=[])
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()
try:
    import seccomp
    wanted = set(CAPABILITIES) - NOT_BY_DEFAULT | set(options.cap)
    rules = default_filter(wanted)
except (ImportError, FileNotFoundError) as why:
    print(f"skipped: {why}")
    sys.exit(77)
os.chroot(options.root)
os.chdir("/")
for number in range(64):
    if number not in {CAPABILITIES[name] for name in wanted}:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
rules.load()
user, group = map(int, options.user.split(":"))
os.setgroups([])
os.setresgid(group, group, group)
os.setresuid(user, user, user)
os.execv(options.command[0], options.command)
