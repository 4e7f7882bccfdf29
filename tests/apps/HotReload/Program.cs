// SPDX-License-Identifier: MIT
// Hot reload by the SDK's own compiler: builds a module in the folder, runs its methods, edits one of them as a debugger
// would, so that its loop stands at another line, and runs them again. Needs DOTNET_MODIFIABLE_ASSEMBLIES=debug.
// Arguments: folder, CPU time of each run in ms.
using System.Reflection;
using System.Reflection.Metadata;
using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

string folder = args[0];
int ms = int.Parse(args[1]);

CSharpCompilation Compile(bool edited)
{
    string source = $$"""
        using System.Diagnostics;
        public static class Shop
        {
            static double sum;
            public static void Edited(int ms)
            {
                var end = System.Environment.CpuUsage.TotalTime + System.TimeSpan.FromMilliseconds(ms); {{(edited ? "sum = 1;\n sum *= 2;\n sum *= 3;" : "")}}
                while (System.Environment.CpuUsage.TotalTime < end)
                    for (int i = 0; i < 1000000; i++) sum += i;
            }
            public static void Untouched(int ms)
            {
                var end = System.Environment.CpuUsage.TotalTime + System.TimeSpan.FromMilliseconds(ms);
                while (System.Environment.CpuUsage.TotalTime < end)
                    for (int i = 0; i < 1000000; i++) sum += i;
            }
        }
        """;
    var libraries = ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!).Split(':')
        .Where(path => Path.GetFileName(path) is "System.Private.CoreLib.dll" or "System.Runtime.dll")
        .Select(path => MetadataReference.CreateFromFile(path));
    var tree = CSharpSyntaxTree.ParseText(SourceText.From(source, Encoding.UTF8), path: Path.Combine(folder, "Shop.cs"));
    return CSharpCompilation.Create("Shop", [tree], libraries, new(OutputKind.DynamicallyLinkedLibrary));
}

static void Check(EmitResult result)
{
    if (!result.Success) throw new InvalidOperationException(string.Join('\n', result.Diagnostics));
}

static IMethodSymbol Method(Compilation from) =>
    (IMethodSymbol)from.GetTypeByMetadataName("Shop")!.GetMembers("Edited").Single();

var before = Compile(false);
string dll = Path.Combine(folder, "Shop.dll"), pdb = Path.Combine(folder, "Shop.pdb");
using (FileStream image = File.Create(dll), symbols = File.Create(pdb))
    Check(before.Emit(image, symbols, options: new(debugInformationFormat: DebugInformationFormat.PortablePdb, pdbFilePath: pdb)));
var shop = Assembly.LoadFrom(dll).GetType("Shop")!;
var methods = new[] { "Edited", "Untouched" }.Select(name => shop.GetMethod(name)!.CreateDelegate<Action<int>>()).ToArray();
foreach (var method in methods) method(ms);

var after = before.ReplaceSyntaxTree(before.SyntaxTrees[0], Compile(true).SyntaxTrees[0]);
var baseline = EmitBaseline.CreateInitialBaseline(before, ModuleMetadata.CreateFromFile(dll), _ => default, _ => default, true);
using MemoryStream metadata = new(), il = new(), lines = new();
Check(after.EmitDifference(baseline, [new(SemanticEditKind.Update, Method(before), Method(after))], _ => false, metadata, il, lines));
MetadataUpdater.ApplyUpdate(shop.Assembly, metadata.ToArray(), il.ToArray(), lines.ToArray());
Console.WriteLine("edited");
foreach (var method in methods) method(ms);
