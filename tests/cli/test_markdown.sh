#!/bin/bash
# SPDX-License-Identifier: MIT
# The format md: exact pages of recordings of known content, and their bounds: no page has more than 4 KB, whatever was
# recorded, and no name of the recorded program stands outside of a code block.
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)

# What depends on time or place is replaced.
page() {
  sed -E 's#'"$FAKE"'#FAKE#; s/^# Recording of [0-9.]+ s,/# Recording of T s,/; s/process [0-9]+$/process P/
    s/; [0-9.]+ of 4 processors used;/; N processors used;/; s/ in [0-9.]+ s  / in T s  /' "$1" > page
  same page
}
run 0 "$CLRSNAP" record -o before.clrsnap -o golden.md -- "$FAKE" golden
page golden.md <<'X'
# Recording of T s, .NET 10.0.12, process P

```text
FAKE golden
```

self: in the method itself, with what is inlined there. here: self, and what it calls that is not own code (framework,
runtime, system). total: with all that it calls; recursion counts once. Shares are of the mode's whole.

## cpu: 22.00 ms of CPU time

11 samples at 499 Hz; N processors used; a share may be off by up to 29.5 points (95 %, by the counts).

```text
   here         ms       self      total  own method
 54.5 %      12.00       2.00      12.00  Shop.Cart<System.Int32>.Work
 18.2 %       4.00       0.00      18.00  Shop.Program.Main
  9.1 %       2.00       2.00       2.00  Odd</script>;"\\x0a.M.lambda#0
  9.1 %       2.00       2.00       2.00  Shop.Late.Comer
  9.1 %       2.00                        [stacks without own code]

   self         ms  not own code
 45.5 %      10.00  System.Linq.Enumerable.Sum
  9.1 %       2.00  [libcoreclr.so]
  9.1 %       2.00  lambda_method1
  9.1 %       2.00  fake_agent_marker

  share  stack, its callers first
 36.4 %  Shop.Program.Main > Shop.Cart<System.Int32>.Work > System.Linq.Enumerable.Sum
  9.1 %  Shop.Program.Main > Shop.Cart<System.Int32>.Work > Shop.Cart<System.Int32>.Work > [libcoreclr.so]
  9.1 %  Shop.Program.Main > Odd</script>;"\\x0a.M.lambda#0
  9.1 %  Shop.Program.Main > lambda_method1
  9.1 %  Shop.Program.Main > Shop.Late.Comer
  (3 more)
```

## What is odd

- 18.2 % of the stacks are cut, mostly because the depth limit was reached.
- cpu: few samples (11).
- The functions of 1 of 2 native libraries have no names.
X

# A comparison: of ten objects in Work and then forty, thirty of which are in Sum.
run 0 "$CLRSNAP" record --mode cpu,alloc -o two.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record --mode cpu,alloc -o three.clrsnap -- "$FAKE" later
run 0 "$CLRSNAP" diff --mode alloc -o diff.md two.clrsnap three.clrsnap
page diff.md <<'X'
# What changed

here: in a method of one's own, and in what it calls that is not own code (framework, runtime,
system); self: in the function itself. The 95 % interval is by the counts of samples: it covers the
chance of sampling, not that runs differ. "?": not significant, the interval contains 0.

## alloc: percent of each recording's allocated bytes

```text
before  10 sampled objects, 1.0 MB allocated in T s  FAKE golden
after   40 sampled objects, 4.1 MB allocated in T s  FAKE later

grew by points, 95 % interval, before, after
  +75.00    +44.86 to   +87.92      0.00    75.00  here  Shop.Program.Main
  +75.00    +44.86 to   +87.92      0.00    75.00  self  System.Linq.Enumerable.Sum

shrank by points, 95 % interval, before, after
  -75.00    -87.92 to   -44.86    100.00    25.00  here  Shop.Cart<System.Int32>.Work
```
X
run 0 "$CLRSNAP" diff --normalize none --mode cpu -o none.md two.clrsnap three.clrsnap
grep -q '^ *+16.00 *[+-][0-9.]* to *+[0-9.]*  *4.00 *20.00  here  Shop.Program.Main$' none.md || fail "none: $(cat none.md)"
run 0 "$CLRSNAP" diff --format md two.clrsnap two.clrsnap
[ "$(grep -cE '^(grew|shrank): nothing$' out)" = 4 ] || fail "a recording differs from itself: $(cat out)"

# A server, most of whose time is idle threads.
run 0 "$CLRSNAP" record --mode wall -o served.md -- "$FAKE" served
grep -q "^40.00 ms of idle threads (the pool's, timers, sockets, ...) are left out; shares are of the rest.$" served.md &&
  grep -q '^ 82.4 % *28.00 *12.00 *28.00  Shop.Cart<System.Int32>.Work$' served.md || fail "idle: $(cat served.md)"

# Large, deep, hostile, empty and cut recordings, and all modes at once.
run 0 "$CLRSNAP" record --mode cpu,wall,alloc,lock,wait,exception,gc --holders off -o all.clrsnap -- "$FAKE" uneven
run 0 "$CLRSNAP" record --buffer 1 -o many.clrsnap -- "$FAKE" many 3000
run 0 "$CLRSNAP" record -o hostile.clrsnap -- "$FAKE" hostile
run 0 "$CLRSNAP" record -o empty.clrsnap -- "$FAKE" empty
run 137 "$CLRSNAP" record -o killed.clrsnap -- "$FAKE" killed
python3 "$here/deep.py" deep.clrsnap 30000 0 || fail "deep.py"
python3 "$here/deep.py" long.clrsnap 100 100 1 5000 || fail "deep.py"
for name in all many hostile empty killed deep long; do
  run 0 timeout 300 "$CLRSNAP" report -o $name.md $name.clrsnap
  [ "$name" = empty ] || run 0 timeout 300 "$CLRSNAP" diff -o $name.diff.md $name.clrsnap $name.clrsnap
done
# All modes of two recordings that differ: a row for what grew or shrank in each, the largest first of those of one kind.
for what in golden later; do
  run 0 "$CLRSNAP" record --mode cpu,wall,alloc,lock,wait,exception,gc --holders off -o $what.clrsnap -- "$FAKE" $what
  run 0 "$CLRSNAP" diff -o $what.diff.md $what.clrsnap all.clrsnap
  ! grep -q nan $what.diff.md || fail "no number: $(cat $what.diff.md)"
  [ "$(wc -c < $what.diff.md)" -gt 3000 ] || fail "$what: room that is not used: $(cat $what.diff.md)"
  awk '/^## / { modes++ } /^(grew|shrank) by/ { kind = ""; table = 1 } /^$/ { table = 0 }
    table && / (here|self)  / { if (!(modes in has)) rows++; has[modes] = 1
      change = $1 < 0 ? -$1 : $1; if ($7 == kind && change > last) exit 1; kind = $7; last = change }
    END { exit modes != 7 || rows != 7 }' <(sed 's/?/ /' $what.diff.md) || fail "$what: $(cat $what.diff.md)"
done
[ "$(wc -c < all.md)" -gt 3000 ] || fail "all modes leave room that is not used: $(cat all.md)"
grep -q '^gc: .*; 40 pauses, every one$' all.md && ! grep -q 'gc: few' all.md || fail "all: $(cat all.md)"
# Each mode has a heading with its own amount, and, below it, its method with the most.
awk '/^[a-z]+: .*; [0-9]+ / { modes++; next } / %  .*(Shop|Odd)/ && modes > last { rows++; last = modes } END { exit modes != 7 || rows != 7 }' all.md ||
  fail "a mode has no row: $(cat all.md)"
# What was not walked has a row of its own, and an amount that is the number of events is said once.
run 0 "$CLRSNAP" record --mode cpu,wall,alloc,lock,wait,exception,gc -o unwalked.clrsnap -o unwalked.md -- "$FAKE" unwalked
grep -qE '^ *[0-9.]+ % +30000000 events  \[stacks that were not walked\]$' unwalked.md || fail "unwalked: $(cat unwalked.md)"
grep -qE '^exception: 122000000 exceptions, 40 of them walked, [^;]*$' unwalked.md || fail "unwalked: $(cat unwalked.md)"
run 0 "$CLRSNAP" record --mode cpu,wall,alloc,lock,wait,exception,gc -o nothing.clrsnap -- "$FAKE" empty
run 0 "$CLRSNAP" report -o nothing.md nothing.clrsnap
for mode in alloc lock wait exception gc holders; do
  unseen=
  [[ $mode != lock && $mode != wait ]] || unseen='; waits that began before are not seen, but `clrsnap stack PID` shows them'
  grep -qE "((^|## )$mode: .*|^0 .*: )none happened while the program was recorded$unseen[.]?$" nothing.md || fail "$mode is empty without a reason: $(cat nothing.md)"
done
grep -q '^- cpu: no samples; the program used too little CPU time; a sample is due every 2\.00 ms of it\.$' empty.md || fail "empty: $(cat empty.md)"
grep -q '^- The program was killed' killed.md || fail "killed: $(cat killed.md)"
cat > check.py <<'X'
import sys
for name in sys.argv[1:]:
    data = open(name, "rb").read()
    code, outside = False, []
    assert len(data) <= 4096, (name, len(data))
    assert not any(b < 32 and b != 10 or b == 127 for b in data), name
    for line in data.decode("utf-8").splitlines():
        if line.startswith("```"):
            assert line == ("```" if code else "```text"), (name, line)
            code = not code
        elif not code:
            outside.append(line)
    assert not code, name
    for word in ("Shop", "Method", "owned", "hostile", "</script>"):
        assert not any(word in line for line in outside), (name, word)
X
run 0 python3 check.py ./*.md
printf '# x\nShop\n' > bad.md
run 1 python3 check.py bad.md
head -c 5000 /dev/zero | tr '\0' x > bad.md
run 1 python3 check.py bad.md
done_testing
