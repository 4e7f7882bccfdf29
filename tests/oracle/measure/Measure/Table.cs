// SPDX-License-Identifier: MIT
// The numbers of a description, each with what was measured: by a search (the offsets at which all instances have the
// word that the DAC names), or by use (how often what the number leads to was right, and wrong).
using System.Text.Json;

namespace Measuring;

sealed class Table(JsonElement description)
{
    sealed class Row
    {
        public HashSet<int>? Places { get; set; }
        public int Instances { get; set; }
        public int Right { get; set; }
        public int Wrong { get; set; }
        public string? Example { get; set; }
    }
    SortedDictionary<string, Row> rows = new(StringComparer.Ordinal);

    // What other stops have measured.
    public void Load(string file)
    {
        if (File.Exists(file)) rows = new(JsonSerializer.Deserialize<Dictionary<string, Row>>(File.ReadAllText(file))!, StringComparer.Ordinal);
    }
    public void Save(string file) => File.WriteAllText(file, JsonSerializer.Serialize(rows));

    Row Of(string name)
    {
        if (!rows.TryGetValue(name, out Row? row)) rows[name] = row = new Row();
        return row;
    }

    public int Offset(string type, string field) => description.GetProperty("types").GetProperty(type).GetProperty(field).GetInt32();
    public int Number(string global) => description.GetProperty("globals").GetProperty(global).GetInt32();
    public bool Has(string type, string field) =>
        description.GetProperty("types").TryGetProperty(type, out JsonElement fields) && fields.TryGetProperty(field, out _);
    public int? Index(string global) =>
        description.GetProperty("globals").TryGetProperty(global, out JsonElement value) && value.ValueKind == JsonValueKind.Array
            && value[0].ValueKind == JsonValueKind.Array ? value[0][0].GetInt32() : null;
    public IEnumerable<(string Name, int Index)> Indexed() =>
        description.GetProperty("globals").EnumerateObject().Select(p => (p.Name, Index(p.Name))).Where(p => p.Item2 != null)
            .Select(p => (p.Name, p.Item2!.Value));

    // One more instance: `there` returns whether the word at an offset is the one in question.
    public void Search(string type, string field, int size, Func<int, bool> there)
    {
        Row row = Of($"{type}.{field}");
        int step = size >= 8 ? 8 : size;
        var found = Enumerable.Range(0, 2048 / step).Select(i => i * step).Where(there).ToHashSet();
        row.Instances++;
        if (row.Places == null) row.Places = found;
        else row.Places.IntersectWith(found);
    }

    public void Use(string name, bool right, string example = "")
    {
        Row row = Of(name);
        if (right) row.Right++;
        else { row.Wrong++; row.Example ??= example; }
    }

    // Returns whether every number of the description was measured, or is in the list of those that cannot be, and none is wrong.
    public bool Report(IReadOnlyDictionary<string, string> unmeasured)
    {
        bool good = true;
        foreach ((string name, Row row) in rows)
        {
            string[] parts = name.Split('.');
            if (row.Places != null)
            {
                int ours = Offset(parts[0], parts[1]);
                bool agrees = row.Places.Contains(ours);
                good &= agrees;
                Console.WriteLine($"{(agrees ? "ok  " : "FAIL")} {name,-45} {ours,5}   found at {string.Join(' ', row.Places.Order().Take(6))} in {row.Instances}");
            }
            if (row.Right + row.Wrong == 0) continue;
            good &= row.Wrong == 0;
            Console.WriteLine($"{(row.Wrong == 0 ? "ok  " : "FAIL")} {name,-45}         {row.Right} right, {row.Wrong} wrong {row.Example}");
        }
        foreach (string name in Names().Where(n => !rows.ContainsKey(n)))
        {
            bool told = unmeasured.TryGetValue(name, out string? why) || unmeasured.TryGetValue(name.Split('.')[0] + ".*", out why);
            good &= told;
            Console.WriteLine($"{(told ? "by  " : "FAIL")} {name,-45}         {why ?? "not measured"}");
        }
        return good;
    }

    IEnumerable<string> Names() =>
        description.GetProperty("types").EnumerateObject().SelectMany(t => t.Value.EnumerateObject().Select(f => $"{t.Name}.{f.Name}"))
            .Concat(description.GetProperty("globals").EnumerateObject().Select(g => g.Name));
}
