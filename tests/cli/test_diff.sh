#!/bin/bash
# SPDX-License-Identifier: MIT
# clrsnap diff: what grew between two recordings of known content, in every format, and what it refuses.
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
tools=$here/../tools

run 0 "$CLRSNAP" record -o before.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record -o after.clrsnap -- "$FAKE" later
run 0 "$CLRSNAP" record --mode wall -o wall.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record -o empty.clrsnap -- "$FAKE" empty

run 0 "$CLRSNAP" diff before.clrsnap after.clrsnap
[ -s err ] && fail "it complains: $(cat err)"
sed -E "s#$FAKE#FAKE#; s/ in [0-9.]+ s,/ in T s,/" out > table
same table <<'X'
before: FAKE golden
        11 samples, 22.00 ms of CPU time in T s, cpu mode at 499 Hz, .NET 10.0.12
after : FAKE later
        22 samples, 44.00 ms of CPU time in T s, cpu mode at 499 Hz, .NET 10.0.12
9 % of the stacks before and 0 % of those after lack callers beyond the depth limit: totals differ for that alone; record both with the same, higher --depth
numbers are percent of each recording's CPU time

What grew
  self +-    before     after  total +-    before     after  method
   +45.45      0.00     45.45    +18.18     81.82    100.00  Shop.Program.Main
    +9.09     45.45     54.55     +9.09     45.45     54.55  System.Linq.Enumerable.Sum

What shrank
  self +-    before     after  total +-    before     after  method
    -9.09      9.09      0.00     -9.09      9.09      0.00  fake_agent_marker
    -9.09      9.09      0.00     -9.09      9.09      0.00  Shop.Late.Comer
    -9.09      9.09      0.00     -9.09      9.09      0.00  lambda_method1
    -9.09      9.09      0.00     -9.09      9.09      0.00  Odd</script>;"\\x0a.M.lambda#0
    -9.09      9.09      0.00     -9.09      9.09      0.00  [libcoreclr.so]
    -9.09      9.09      0.00     +0.00     54.55     54.55  Shop.Cart<System.Int32>.Work
X

# Engines have errors of their own.
run 0 "$CLRSNAP" record -o perf.clrsnap -- "$FAKE" compiles
run 0 "$CLRSNAP" record -o clock.clrsnap -- "$FAKE" clocked
run 0 "$CLRSNAP" diff --fail-if 'self(Shop.Program.Main) > +99.9pt' -o x.md perf.clrsnap clock.clrsnap
grep -q '^clrsnap:   engines differ (perf, clock): shares may differ' err || fail "--fail-if: $(cat err)"
grep -q '^engines differ (perf, clock)' x.md || fail "the engines are not in Markdown: $(cat x.md)"
run 0 "$CLRSNAP" diff perf.clrsnap clock.clrsnap
grep -q '^engines differ (perf, clock)' out || fail "the engines are not in the text: $(cat out)"

# So has the kernel's part of a stack, in whichever recording it is.
run 0 "$CLRSNAP" record -o kernel.clrsnap -- "$FAKE" kernel
for pair in 'perf kernel after' 'kernel perf before'; do
  read -r one other which <<< "$pair"
  run 0 "$CLRSNAP" diff $one.clrsnap $other.clrsnap
  grep -q "^only the recording $which has the frames of --kernel: shares differ for that alone" out || fail "$pair: $(cat out)"
  run 0 "$CLRSNAP" diff -o x.json $one.clrsnap $other.clrsnap
  python3 - "$which" << 'X' || fail "$pair: the reason is not in JSON"
import json, sys
reasons = json.load(open("x.json"))["modes"][0]["diff"]["reasons"]
assert len(reasons) == 1 and reasons[0].startswith(f"only the recording {sys.argv[1]} has the frames of --kernel"), reasons
X
done
run 0 "$CLRSNAP" diff kernel.clrsnap kernel.clrsnap
grep -q 'has the frames of' out && fail "both have the kernel's frames: $(cat out)"

# In the recording's unit a sample is 2 ms: Sum had 5 of them and has 12.
run 0 "$CLRSNAP" diff --normalize none --top 1 before.clrsnap after.clrsnap
grep -q '^ *+20.00 *0.00 *20.00 *+26.00 *18.00 *44.00  Shop.Program.Main$' out || fail "none: $(cat out)"
[ "$(grep -c '^ *[+-][0-9]' out)" = 2 ] || fail "--top 1 has more than one line a table: $(cat out)"
# A recording against itself: nothing changed, whatever is compared.
for how in total rate none; do
  run 0 "$CLRSNAP" diff --normalize $how before.clrsnap before.clrsnap
  [ "$(grep -c '^  nothing$' out)" = 2 ] || fail "$how: a recording differs from itself: $(cat out)"
done
# Per second: the lengths differ from run to run, but the unit does not.
run 0 "$CLRSNAP" diff --normalize rate before.clrsnap after.clrsnap
grep -q 'numbers are milliseconds in each second' out || fail "rate: $(cat out)"

run 0 "$CLRSNAP" diff -o x.collapsed before.clrsnap after.clrsnap
echo "clrsnap: wrote x.collapsed" | same err
grep -Fqx 'Shop.Program.Main 0 20000000' x.collapsed || fail "collapsed: $(cat x.collapsed)"
awk '{ b += $(NF - 1); a += $NF } END { print b, a }' x.collapsed > sums
echo "22000000 44000000" | same sums
run 0 "$CLRSNAP" diff --native off --format collapsed before.clrsnap after.clrsnap
grep -q libcoreclr out && fail "--native off leaves native frames: $(cat out)"

run 0 "$CLRSNAP" diff -o x.json before.clrsnap after.clrsnap
python3 - <<'X' || fail "json"
import json
mode = json.load(open("x.json"))["modes"][0]
diff = mode["diff"]
assert sum(mode["self"]) == 22 and sum(diff["self"]) == 11, (mode["self"], diff["self"])
assert len(mode["self"]) == len(diff["self"]) == len(diff["selfUs"]) == len(mode["parent"])
assert diff["normalize"] == "total" and diff["scale"] == {"samples": 2, "weight": 2}, diff["scale"]
assert diff["facts"]["program"].endswith("golden") and mode["facts"]["program"].endswith("later")
X
run 0 "$CLRSNAP" diff -o x.html before.clrsnap after.clrsnap
grep -q '</html>' x.html || fail "no page"

# Several outputs are what each is by itself; what is said is said once.
cp x.collapsed one.collapsed
run 0 "$CLRSNAP" diff -o - -o x.html -o x.collapsed -o y.json before.clrsnap after.clrsnap
printf 'clrsnap: wrote %s\n' x.html x.collapsed y.json | same err
cmp -s one.collapsed x.collapsed && cmp -s x.json y.json && grep -q '</html>' x.html || fail "several outputs"
sed -E "s#$FAKE#FAKE#; s/ in [0-9.]+ s,/ in T s,/" out | diff - table > difference || fail "a table among others: $(cat difference)"
# One that cannot be written does not prevent the others.
run 1 "$CLRSNAP" diff -o /nowhere/x.json -o z.json before.clrsnap after.clrsnap
cmp -s x.json z.json || fail "no output beside one that cannot be written"

# Several modes: the tables of those that both recordings have, one after the other, or of one of them; a page also has
# the modes that only one recording has.
run 0 "$CLRSNAP" record --mode cpu,alloc -o two.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record --mode cpu,alloc,exception -o three.clrsnap -- "$FAKE" later
run 0 "$CLRSNAP" diff two.clrsnap three.clrsnap
echo "clrsnap: two.clrsnap was recorded without exception mode, which is not compared" | same err
[ "$(grep -c '^What grew$' out)" = 2 ] || fail "not two modes: $(cat out)"
grep -q '^ *+75.00 *0.00 *75.00 *+75.00 *0.00 *75.00  System.Linq.Enumerable.Sum$' out || fail "alloc: $(cat out)"
grep -Eq '^        40 sampled objects, 4.1 MB allocated in [0-9.]+ s, alloc mode, .NET 10.0.12$' out || fail "its facts: $(cat out)"
cp out both
run 0 "$CLRSNAP" diff --mode alloc two.clrsnap three.clrsnap
[ -s err ] && fail "what was not asked for is spoken of: $(cat err)"
tail -n "$(wc -l < out)" both | same out
run 1 "$CLRSNAP" diff -o no.collapsed two.clrsnap three.clrsnap
echo "clrsnap: both recordings have the modes cpu, alloc: choose one with --mode" | same err
[ -e no.collapsed ] && fail "stacks of which mode?"
run 0 "$CLRSNAP" diff --mode alloc -o y.json two.clrsnap three.clrsnap
echo "clrsnap: wrote y.json" | same err
python3 - <<'X' || fail "the modes of a page"
import json
modes = json.load(open("y.json"))["modes"]
assert [(m["facts"]["mode"], "diff" in m, m.get("only")) for m in modes] == [
    ("alloc", True, None), ("cpu", True, None), ("exception", False, "after")], modes
assert sum(modes[0]["diff"]["selfWeight"]) == 10 * 102400 and sum(modes[0]["selfWeight"]) == 40 * 102400
X
run 0 "$CLRSNAP" diff --mode alloc -o y.html two.clrsnap three.clrsnap
python3 "$tools/pagedata.py" y.html y.json || fail "the page has other numbers"

# Conditions: one that holds is an exit code of its own; one that chance explains does not hold; one that measures nothing
# is a failure.
condition() { # EXIT_CODE CONDITION [OPTIONS...], and the sentences on standard input
  run "$1" "$CLRSNAP" diff --fail-if "$2" "${@:3}" two.clrsnap three.clrsnap
  grep -v 'which is not compared$' err > sentences
  same sentences
}
deep='9 % of the stacks before and 0 % of those after lack callers beyond the depth limit: totals differ for that alone; record both with the same, higher --depth'
alarm='chance of a false alarm (sampling shows as much, if the truth is the limit)'
condition 3 'alloc:self(System.Linq*) > +30pt' <<X
clrsnap: --fail-if 'alloc:self(System.Linq*) > +30pt' holds
clrsnap:   0.00 % of allocated bytes before, 75.00 % after: +75.00 points, 95 % interval +44.86 points to +87.92 points
clrsnap:   $alarm 0.39 %; below 2.5 % is significant
X
condition 3 'self(*.Sum) > 50%' --mode alloc <<X
clrsnap: --fail-if 'self(*.Sum) > 50%' holds
clrsnap:   0.00 % of allocated bytes before, 75.00 % after: 75.00 %, 95 % interval 59.81 % to 85.81 %
clrsnap:   $alarm 0.078 %; below 2.5 % is significant
X
condition 0 'self(System.Linq.*) > +5%' <<X
clrsnap: --fail-if 'self(System.Linq.*) > +5%' is not significant, so it does not hold
clrsnap:   45.45 % of CPU time before, 54.55 % after: +20.0 %, 95 % interval -38.5 % to +180.4 %
clrsnap:   $deep
clrsnap:   $alarm 36 %; below 2.5 % is significant
X
condition 0 'alloc:total(Shop.Cart<*>.Work) > +1%' <<X
clrsnap: --fail-if 'alloc:total(Shop.Cart<*>.Work) > +1%' does not hold
clrsnap:   100.00 % of allocated bytes before, 25.00 % after: -75.0 %, 95 % interval -86.7 % to -56.2 %
X
condition 0 'self(System.Linq.*) > +5%' --normalize none --mode cpu <<X
clrsnap: --fail-if 'self(System.Linq.*) > +5%' is not significant, so it does not hold
clrsnap:   10.00 ms of CPU time before, 24.00 ms after: +140.0 %, 95 % interval -11.8 % to +553.0 %
clrsnap:   $deep
clrsnap:   $alarm 5.5 %; below 2.5 % is significant
X
run 3 "$CLRSNAP" diff -o several.md -o several.json --fail-if 'alloc:self(*.Sum) > +5%' two.clrsnap three.clrsnap
[ "$(grep -c 'which is not compared$' err)" = 1 ] && [ -s several.md ] && [ -s several.json ] || fail "several outputs: $(cat err)"
condition 1 'self(Shop.Typo) > +5%' <<X
clrsnap: --fail-if 'self(Shop.Typo) > +5%' cannot be judged: no method in either recording has such a name
X
condition 1 'lock:self(*) > +5%' <<X
clrsnap: --fail-if 'lock:self(*) > +5%' cannot be judged: lock mode is not compared
X
run 3 "$CLRSNAP" diff --fail-if 'self(*.Main) > +1%' --fail-if 'alloc:self(*.Sum) > +5%' --fail-if 'self(*) > +5%' -o x.json \
  two.clrsnap three.clrsnap
[ "$(grep -c -- --fail-if err)" = 3 ] && grep -q 'wrote x.json' err || fail "three conditions: $(cat err)"
wrong() { # CONDITION COLUMN TEXT
  run 2 "$CLRSNAP" diff --fail-if "$1" a b
  printf '%s\n' "clrsnap:   $1" "clrsnap:   $(printf '%*s^' "$2" '')" "clrsnap: --fail-if: $3; 'clrsnap help diff' lists the options" |
    same err
}
wrong 'slf(x) > 1%' 0 "self(METHOD) or total(METHOD) is expected there"
wrong 'cpo:self(x) > 5%' 0 "the name of a mode, like cpu or alloc, is expected there"
wrong 'self(x > 1%' 11 "')' is expected at the end"
wrong 'self() > 5%' 5 "the name of a method is expected there"
wrong 'self(x) < 5%' 8 "'>' is expected there"
wrong 'self(x) > five' 10 "a number, like 5 or 0.5, is expected there"
wrong 'self(x) > 5pt' 11 "'%', or '+' before the number, is expected there"
wrong 'self(x) > +5' 12 "'%' or 'pt' is expected at the end"
wrong 'self(x) > 500%' 10 "less than 100, the whole, is expected there"
wrong 'self(x) > +5% or so' 14 "the end is expected there"

# Stacks that would come to gigabytes when they are written out are not written.
python3 "$here/deep.py" deep.clrsnap 30000 0 || fail "deep.py"
run 1 timeout 300 "$CLRSNAP" diff -o deep.collapsed deep.clrsnap deep.clrsnap
grep -q 'deep.collapsed is not written: its stacks would come to more than' err || fail "deep.collapsed: $(cat err)"
[ ! -e deep.collapsed ] || fail "deep.collapsed was written all the same"

# What cannot be compared is refused, and nothing is written.
refused() {
  run 1 "$CLRSNAP" diff -o no.html "$2" "$3"
  echo "clrsnap: $1" | same err
  [ -e no.html ] && fail "a page was written of what was refused"
}
refused "wall.clrsnap has wall, after.clrsnap has cpu: they have no mode in common; record both with the same --mode" \
  wall.clrsnap after.clrsnap
refused "empty.clrsnap has no samples: there is nothing to compare with" empty.clrsnap after.clrsnap
run 1 "$CLRSNAP" diff before.clrsnap missing.clrsnap
grep -q 'missing.clrsnap' err || fail "which file is missing is not said: $(cat err)"
usage() {
  run 2 "$CLRSNAP" diff "${@:2}"
  echo "clrsnap: $1; 'clrsnap help diff' lists the options" | same err
}
run 1 "$CLRSNAP" diff --mode wall wall.clrsnap after.clrsnap
echo "clrsnap: wall.clrsnap has wall, after.clrsnap has cpu: not both have wall mode" | same err
usage "diff takes two recordings, not 1" before.clrsnap
usage "diff takes two recordings, not 3" a b c
usage "--normalize takes 'total', 'rate' or 'none', not 'all'" --normalize all a b
usage "a comparison's format is chosen by .txt, .html, .json, .collapsed, .md, or by --format: 'x.pb.gz' has none of these" -o x.pb.gz a b
usage "a comparison's format is chosen by .txt, .html, .json, .collapsed, .md, or by --format: 'x' has none of these" -o x a b
usage "--fail-if 'self(x) > 5%' is about shares of the total, which --normalize rate does not have; '> +N%' is about any number" \
  --normalize rate --fail-if 'self(x) > 5%' a b
usage "--format applies to one --output; several are told apart by their suffixes" --format html -o a.html -o b.html a b
usage "--output takes a name" -o '' a b
done_testing
