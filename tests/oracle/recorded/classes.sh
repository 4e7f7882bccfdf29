# SPDX-License-Identifier: MIT
# Sources for the C# compiler to compile. Sourced by other scripts.
#
# find_compiler: sets CSC to the SDK's compiler and REF to a folder of reference assemblies; false if either is not
# found.
find_compiler() {
  local root
  root=$(dirname "$(readlink -f "$(command -v dotnet)")")
  CSC=$root/sdk/$(dotnet --version)/Roslyn/bincore/csc.dll
  REF=$(ls -d "$root"/packs/Microsoft.NETCore.App.Ref/*/ref/net* "$root"/shared/Microsoft.NETCore.App/10.* 2> /dev/null | head -1)
  [ -f "$CSC" ] && [ -n "$REF" ]
}

# make_classes DIR: writes 600 classes to DIR/c*.cs, and the compiler's arguments except -out to DIR/rsp.
make_classes() {
  local i dll
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
  done | awk -v dir="$1" '/^namespace/ { n++ } { print > (dir "/c" n ".cs") }'
  {
    echo "-target:library -deterministic -nologo -nostdlib -optimize -langversion:latest -pathmap:$1=/src"
    for dll in "$REF"/System*.dll "$REF"/Microsoft.CSharp.dll "$REF"/netstandard.dll "$REF"/mscorlib.dll; do
      case $dll in *System.IO.Compression.Native*|*.Native.dll) ;; *) echo "-r:$dll" ;; esac
    done
    ls "$1"/c*.cs
  } > "$1/rsp"
}
