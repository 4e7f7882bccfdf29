#!/bin/bash
# SPDX-License-Identifier: MIT
# compiler.sh BUILD: the C# compiler, a program that nobody wrote for this, compiles 600 classes while
# it is recorded at 1 kHz: the same bytes as without, no crash, 99.5 % of the walks complete, and not
# one in a thousand that ended for a reason which the summary does not name (src/walk/stop.h).
BUILD=$1
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
ROOT=$(dirname "$(readlink -f "$(command -v dotnet)")")
SDK=$ROOT/sdk/$(dotnet --version)
CSC=$SDK/Roslyn/bincore/csc.dll
REF=$(ls -d "$ROOT"/packs/Microsoft.NETCore.App.Ref/*/ref/net* "$ROOT"/shared/Microsoft.NETCore.App/10.* 2> /dev/null | head -1)
[ -f "$CSC" ] && [ -n "$REF" ] || { echo "skipped: the SDK's compiler is not where it is looked for"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
for i in $(seq 600); do
  cat << X
namespace Made$((i % 20));
public class Class$i<T> where T : new()
{
    readonly System.Collections.Generic.Dictionary<string, T> items = new();
    public int Field$i { get; set; } = $i;
    public T Get(string key) => items.TryGetValue(key, out T found) ? found : items[key] = new T();
    public System.Collections.Generic.IEnumerable<int> Count(int n)
    {
        for (int j = 0; j < n; j++) { if (j % 3 == $((i % 3))) yield return j * Field$i; }
    }
    public System.Func<int, string> Make(int a) => b => \$"{a + b} of {Field$i:x} in {nameof(Class$i<T>)}";
    public async System.Threading.Tasks.Task<int> Wait(int n)
    {
        try { await System.Threading.Tasks.Task.Delay(n); return n switch { 0 => 1, > 5 and < 9 => 2, _ => n }; }
        finally { Field$i++; }
    }
}
X
done | awk -v dir="$WORK" '/^namespace/ { n++ } { print > (dir "/c" n ".cs") }'
{
  echo "-target:library -deterministic -nologo -nostdlib -optimize -langversion:latest -pathmap:$WORK=/src"
  for dll in "$REF"/System*.dll "$REF"/Microsoft.CSharp.dll "$REF"/netstandard.dll "$REF"/mscorlib.dll; do
    case $dll in *System.IO.Compression.Native*|*.Native.dll) ;; *) echo "-r:$dll" ;; esac
  done
  ls "$WORK"/c*.cs
} > "$WORK/rsp"
dotnet "$CSC" -noconfig "@$WORK/rsp" -out:"$WORK/made.dll" > "$WORK/log" 2>&1 ||
  { head -5 "$WORK/log"; fail "the generated classes do not compile"; }
mv "$WORK/made.dll" "$WORK/plain.dll"
timeout -k 10 300 "$BUILD/bin/clrsnap" record -F 1000 --format collapsed -o "$WORK/out" -- \
  dotnet "$CSC" -noconfig "@$WORK/rsp" -out:"$WORK/made.dll" 2> "$WORK/log" ||
  { cat "$WORK/log"; fail "the compiler fails while it is recorded"; }
cat "$WORK/log"
cmp "$WORK/plain.dll" "$WORK/made.dll" || fail "the recorded compiler's output differs"
complete=$(sed -n 's/.*complete walks \([0-9.]*\) %.*/\1/p' "$WORK/log")
[ -n "$complete" ] || fail "the summary does not say how many walks were complete"
awk -v c="$complete" 'BEGIN { exit !(c >= 99.5) }' || fail "only $complete % of the walks were complete"
awk '/ samples in / { all = $2 } /complete walks/ { c = $4 } / cut [0-9]+ [a-z-]+: / { named += $3 }
  END { exit !(all > 500 && all * c / 100 + named >= all * 0.999 - 1) }' "$WORK/log" ||
  fail "walks ended without a reason"
echo "pass: the same $(stat -c %s "$WORK/plain.dll") bytes"
