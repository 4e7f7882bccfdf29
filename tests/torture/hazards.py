# SPDX-License-Identifier: MIT
"""The hazards: the programs of tests/apps/Torture, their arguments, and how each may be recorded."""

TIERING = {"DOTNET_TC_CallCountThreshold": "2", "DOTNET_TC_CallCountingDelayMs": "0",
           "DOTNET_TC_BackgroundWorkerTimeoutMs": "0", "DOTNET_OSR_HitLimit": "1",
           "DOTNET_TC_OnStackReplacement_InitialCounter": "10", "DOTNET_TieredPGO": "1"}
COLLECTIONS = {"DOTNET_GCgen0size": "20000"}  # hexadecimal: a collection after each 128 KiB

# Environment variables that make a hazard harder.
HAZARDS = {
    "jit": TIERING,
    "dynamic": {},
    "collectible": TIERING,
    "exceptions": {},
    "nullref": {},
    "gc": COLLECTIONS,
    "activation": COLLECTIONS,
    "threads": {},
    "libraries": {},
    "malloc": {},
    "stacks": {},
    "fork": {},
    "vfork": {},
    "spawn": {},
    "exec": {},
    "eintr": {},
    "realtime": {},
    "masked": {},
    "replaced": {},
    "exit": {},
    "crash": {"DOTNET_DbgEnableMiniDump": "1", "DOTNET_DbgMiniDumpType": "1"},
    "busy": {**TIERING, **COLLECTIONS},
}
# These end, or become another program, before a second attach.
LAUNCHED_ONLY = {"exec", "exit", "crash"}
# Accepted reasons for refusing a recording by attach.
REFUSALS = {"realtime": "^clrsnap: all real-time signals from 35 on are in use",
            "replaced": "^clrsnap: (all real-time signals from 35 on are in use|.*the program uses (SIGURG|signal))"}

ENGINES = [["--engine", "perf"], ["--engine", "clock"], ["--mode", "wall"]]
MORE = [[], [], ["--native", "off"], ["--inlined"], ["--lines"], ["--threads", "each"]]
EVENTS = ["alloc", "lock", "wait", "exception", "gc"]
HELD_UP = {"activation"}  # gc mode sends signals in suspensions, too


def recording(rng, hazard, how):
    """Options of a recording, drawn."""
    options = list(rng.choice(ENGINES))
    if rng.random() < (1 if hazard in HELD_UP else 0.3):
        modes = ["wall" if "wall" in options else "cpu"] + rng.sample(EVENTS, rng.randint(1, len(EVENTS)))
        if hazard in HELD_UP and "gc" not in modes:
            modes.append("gc")
        options = [o for o in options if o not in ("--mode", "wall")] + ["--mode", ",".join(modes)]
    more = rng.choice(MORE)
    if how == "attach" and more == ["--inlined"]:
        more = []  # the program would have to be started for it
    return options + more + ["-F", "10000" if rng.random() < 0.8 else "997"]
